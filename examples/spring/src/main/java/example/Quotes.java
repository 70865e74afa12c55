package example;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.messaging.handler.annotation.DestinationVariable;
import org.springframework.messaging.handler.annotation.MessageExceptionHandler;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.messaging.rsocket.annotation.ConnectMapping;
import org.springframework.security.core.context.ReactiveSecurityContextHolder;
import org.springframework.stereotype.Controller;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@SpringBootApplication
@Controller
public class Quotes {
    public record Query(String symbol, int count) {}

    public record Quote(UUID id, String symbol, BigDecimal price, Instant at) {}

    public record Hello(String name) {}

    static Quote quote(String symbol, long number) {
        return new Quote(UUID.randomUUID(), symbol, BigDecimal.valueOf(10_000 + number, 2), Instant.now());
    }

    @ConnectMapping("quotes.client")
    Mono<Void> connected(Hello hello) {
        System.out.println("connected: " + hello.name());
        return Mono.empty();
    }

    @MessageMapping("quotes.latest")
    Mono<Quote> latest(Query query) {
        if (query.count() < 0) {
            throw new IllegalArgumentException("count must not be negative");
        }
        return Mono.just(quote(query.symbol(), 0));
    }

    @MessageMapping("quotes.of.{symbol}")
    Flux<Quote> of(@DestinationVariable String symbol, Query query) {
        return Flux.interval(Duration.ofMillis(1)).onBackpressureBuffer().map(n -> quote(symbol, n)).take(query.count());
    }

    @MessageMapping("quotes.sum")
    Flux<Integer> running(Flux<Integer> numbers) {
        return numbers.scan(Integer::sum);
    }

    @MessageMapping("quotes.note")
    Mono<Void> note(String text) {
        System.out.println("noted: " + text);
        return Mono.empty();
    }

    @MessageMapping("quotes.admin")
    Mono<String> admin() {
        return ReactiveSecurityContextHolder.getContext().map(context -> context.getAuthentication().getName());
    }

    @MessageExceptionHandler
    Mono<Quote> refused(IllegalArgumentException error) {
        return Mono.error(new IllegalArgumentException("refused: " + error.getMessage()));
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Quotes.class, arguments);
    }
}
