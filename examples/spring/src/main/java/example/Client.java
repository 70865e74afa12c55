package example;

import example.Quotes.Hello;
import example.Quotes.Query;
import example.Quotes.Quote;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.rsocket.metadata.AuthMetadataCodec;
import io.rsocket.metadata.WellKnownMimeType;
import java.util.List;
import org.springframework.http.codec.cbor.Jackson2CborDecoder;
import org.springframework.http.codec.cbor.Jackson2CborEncoder;
import org.springframework.messaging.rsocket.RSocketRequester;
import org.springframework.messaging.rsocket.RSocketStrategies;
import org.springframework.security.rsocket.metadata.SimpleAuthenticationEncoder;
import org.springframework.security.rsocket.metadata.UsernamePasswordMetadata;
import org.springframework.util.MimeType;
import org.springframework.util.MimeTypeUtils;
import reactor.core.publisher.Flux;

public class Client {
    static final MimeType AUTHENTICATION =
        MimeTypeUtils.parseMimeType(WellKnownMimeType.MESSAGE_RSOCKET_AUTHENTICATION.getString());

    // Spring asks no BearerTokenAuthenticationEncoder: the one for passwords takes every credential for its own.
    static ByteBuf bearer(String token) {
        return AuthMetadataCodec.encodeBearerMetadata(ByteBufAllocator.DEFAULT, token.toCharArray());
    }

    public static void main(String[] arguments) {
        String password = arguments.length > 1 ? arguments[1] : "s3cret";
        RSocketStrategies strategies = RSocketStrategies.builder()
            .encoders(list -> list.add(new Jackson2CborEncoder()))
            .encoders(list -> list.add(new SimpleAuthenticationEncoder()))
            .decoders(list -> list.add(new Jackson2CborDecoder()))
            .build();
        RSocketRequester requester = RSocketRequester.builder()
            .rsocketStrategies(strategies)
            .setupRoute("quotes.client")
            .setupData(new Hello("Spring"))
            .setupMetadata(new UsernamePasswordMetadata("ada", password), AUTHENTICATION)
            .tcp("localhost", Integer.parseInt(arguments[0]));

        Quote latest;
        try {
            latest = requester.route("quotes.latest").data(new Query("ACME", 1)).retrieveMono(Quote.class).block();
        } catch (RuntimeException error) {
            System.out.println("refused: " + error.getMessage());
            System.exit(1);
            return;
        }
        System.out.println("latest: " + latest.symbol() + " " + latest.price());

        List<Quote> quotes = requester.route("quotes.of.{symbol}", "ACME").data(new Query("ACME", 100))
            .retrieveFlux(Quote.class).limitRate(8).collectList().block();
        System.out.println("stream: " + quotes.size());

        List<Integer> sums = requester.route("quotes.sum").data(Flux.range(1, 100))
            .retrieveFlux(Integer.class).collectList().block();
        System.out.println("channel: " + sums.get(sums.size() - 1));

        requester.route("quotes.note").data("hello").send().block();

        // Credentials of a request, instead of those of the connection; the last ones are not an administrator's.
        List<Object> credentials = List.of(
            new UsernamePasswordMetadata("grace", "h0pper"), bearer("t0ken"),
            new UsernamePasswordMetadata("grace", "wrong"), bearer("wrong"),
            new UsernamePasswordMetadata("ada", "s3cret"));
        int denied = 0;
        for (Object each : credentials) {
            try {
                System.out.println("admin: " + requester.route("quotes.admin").metadata(each, AUTHENTICATION)
                    .retrieveMono(String.class).block());
            } catch (RuntimeException error) {
                denied++;
            }
        }
        System.out.println("denied: " + denied);

        requester.route("quotes.of.{symbol}", "ACME").data(new Query("ACME", 1_000_000))
            .retrieveFlux(Quote.class).limitRate(8).take(10).blockLast();
        System.out.println("canceled after 10");

        try {
            requester.route("quotes.latest").data(new Query("ACME", -1)).retrieveMono(Quote.class).block();
        } catch (RuntimeException error) {
            System.out.println("error: " + error.getMessage());
        }
        requester.dispose();
    }
}
