package interop;

import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketServer;
import io.rsocket.core.Resume;
import io.rsocket.exceptions.CustomRSocketException;
import io.rsocket.lease.Lease;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.util.DefaultPayload;
import java.time.Duration;
import java.util.List;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The interop service on rsocket-java: {@code Server TRANSPORT [--lease]} prints {@code LISTENING port} and serves until it is
 * killed. interop/README.md describes the procedures.
 */
public final class Server implements RSocket {
  private static final int FRAGMENT_BYTES = 64 * 1024;

  /** Items that a channel requests at a time. */
  private static final int WINDOW = 8;

  private static final int LEASE_REQUESTS = 4;
  private static final Duration LEASE_TTL = Duration.ofSeconds(1);

  public static void main(String[] arguments) {
    RSocketServer builder = RSocketServer.create(SocketAcceptor.with(new Server())).fragment(FRAGMENT_BYTES);
    if (List.of(arguments).contains("--lease")) {
      builder.lease(leases -> leases.sender(Server::leases));
    } else {
      builder.resume(new Resume().sessionDuration(Duration.ofSeconds(30)));
    }
    CloseableChannel server = builder.bindNow(Transports.server(arguments[0]));
    System.out.println("LISTENING " + server.address().getPort());
    server.onClose().block();
  }

  /** A lease now, and another one whenever it expires. */
  private static Flux<Lease> leases() {
    return Flux.interval(Duration.ZERO, LEASE_TTL).map(at -> Lease.create(LEASE_TTL, LEASE_REQUESTS));
  }

  @Override
  public Mono<Payload> requestResponse(Payload request) {
    return switch (Routing.routeOf(request)) {
      case "echo" -> Mono.just(request);
      case "fail" -> Mono.error(new CustomRSocketException(0x301, "boom"));
      case "slow" ->
          Mono.just(DefaultPayload.create(request.getDataUtf8()))
              .delayElement(Duration.ofMillis(Long.parseLong(request.getDataUtf8())));
      default -> Mono.error(new IllegalArgumentException("no such call"));
    };
  }

  @Override
  public Flux<Payload> requestStream(Payload request) {
    String data = request.getDataUtf8();
    return switch (Routing.routeOf(request)) {
      case "count" -> Flux.range(0, Integer.parseInt(data)).map(Server::number);
      case "blob" -> {
        String[] numbers = data.split(",");
        byte[] item = new byte[Integer.parseInt(numbers[1])];
        yield Flux.range(0, Integer.parseInt(numbers[0])).map(at -> DefaultPayload.create(item));
      }
      default -> Flux.error(new IllegalArgumentException("no such stream"));
    };
  }

  @Override
  public Flux<Payload> requestChannel(Publisher<Payload> payloads) {
    return Flux.from(payloads).switchOnFirst((first, all) -> channel(first.get(), all.limitRate(WINDOW)));
  }

  private static Flux<Payload> channel(Payload first, Flux<Payload> all) {
    Flux<Integer> numbers = all.map(Payload::getDataUtf8).filter(text -> !text.isEmpty()).map(Integer::parseInt);
    return switch (Routing.routeOf(first)) {
      case "sum" -> numbers.reduce(0, Integer::sum).map(Server::number).flux();
      case "double" -> numbers.map(number -> number(2 * number));
      default -> Flux.error(new IllegalArgumentException("no such channel"));
    };
  }

  @Override
  public Mono<Void> fireAndForget(Payload request) {
    System.out.println("LOG " + request.data().readableBytes());
    return Mono.empty();
  }

  private static Payload number(int number) {
    return DefaultPayload.create(Integer.toString(number));
  }
}
