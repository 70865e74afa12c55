package example;

import io.rsocket.core.Resume;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ThreadLocalRandom;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.rsocket.server.RSocketServerCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.stereotype.Controller;
import reactor.core.publisher.Flux;

/** Publishes quotes, a hundred times per second, as fast as each subscriber asks for them. */
@SpringBootApplication
@Controller
public class Publisher {
    record Quote(String symbol, double price, Instant at) {}

    private static final String[] SYMBOLS = {"ACME", "BETA", "CRUX", "DYNE"};

    public static void main(String[] arguments) {
        SpringApplication.run(Publisher.class, arguments);
    }

    /** A collector that comes back within two minutes misses nothing. */
    @Bean
    RSocketServerCustomizer resumption() {
        return server -> server.resume(new Resume().sessionDuration(Duration.ofMinutes(2)));
    }

    @MessageMapping("quotes")
    Flux<Quote> quotes() {
        return Flux.interval(Duration.ofMillis(10)).onBackpressureBuffer(100_000).map(Publisher::quote);
    }

    private static Quote quote(long number) {
        double price = 100 + ThreadLocalRandom.current().nextInt(-500, 500) / 100.0;
        return new Quote(SYMBOLS[(int) (number % SYMBOLS.length)], price, Instant.now());
    }
}
