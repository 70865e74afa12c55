package interop;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.RSocketErrorException;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.Resume;
import io.rsocket.lease.MissingLeaseException;
import io.rsocket.metadata.WellKnownMimeType;
import io.rsocket.util.DefaultPayload;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import reactor.core.Disposable;
import reactor.core.Exceptions;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/**
 * The interop checks on rsocket-java: {@code Client TRANSPORT HOST PORT CUT_PORT [--lease]} prints one JSON object,
 * and exits with 0 if all checks are ok. With {@code --lease} only the check of leases runs, otherwise all others.
 * interop/README.md describes the checks. Each check uses its own connection.
 */
public final class Client {
  private static final int FRAGMENT_BYTES = 64 * 1024;
  private static final int MEGABYTES_20 = 20 * 1024 * 1024;
  private static final Duration ANSWER_TIMEOUT = Duration.ofSeconds(10);
  private static final Duration CHECK_TIMEOUT = Duration.ofSeconds(30);

  /** Calls that need three leases, and so take at least two intervals, less the inaccuracy of clocks and timers. */
  private static final int LEASE_CALLS = 10;

  private static final Duration LEASE_TIME = Duration.ofMillis(1_800);

  private final String transport;
  private final String host;
  private final int port;
  private final int cutPort;
  private final boolean leases;

  private Client(String transport, String host, int port, int cutPort, boolean leases) {
    this.leases = leases;
    this.transport = transport;
    this.host = host;
    this.port = port;
    this.cutPort = cutPort;
  }

  @FunctionalInterface
  private interface Check {
    void run(RSocket peer) throws Exception;
  }

  public static void main(String[] arguments) {
    int port = Integer.parseInt(arguments[2]);
    int cutPort = Integer.parseInt(arguments[3]);
    boolean leases = arguments.length > 4;
    System.exit(new Client(arguments[0], arguments[1], port, cutPort, leases).runAll() ? 0 : 1);
  }

  private Map<String, Check> checks() {
    Map<String, Check> checks = new LinkedHashMap<>();
    checks.put("echo", this::echo);
    checks.put("echo-empty", peer -> echoSize(peer, 0));
    checks.put("echo-1B", peer -> echoSize(peer, 1));
    checks.put("echo-100kB", peer -> echoSize(peer, 100_000));
    checks.put("echo-20MB", peer -> echoSize(peer, MEGABYTES_20));
    checks.put("echo-shreds", this::echoShreds);
    checks.put("count", peer -> expect(texts(peer.requestStream(request("count", "1000"))), range(0, 1000), "items"));
    checks.put("count-none", peer -> expect(texts(peer.requestStream(request("count", "0"))), List.of(), "items"));
    checks.put("count-window", this::countWindow);
    checks.put("count-cancel", this::countCancel);
    checks.put("no-metadata", this::noMetadata);
    checks.put("blob", peer -> blob(peer, 5, 100_000));
    checks.put("blob-empty", peer -> blob(peer, 3, 0));
    checks.put("blob-20MB", peer -> blob(peer, 1, MEGABYTES_20));
    checks.put("sum", peer -> expect(converse(peer, request("sum", "1"), 2, 101, 4), List.of("5050"), "sum"));
    checks.put("sum-late", peer -> expect(converse(peer, request("sum", ""), 1, 101, 4), List.of("5050"), "sum"));
    checks.put("sum-one", peer -> expect(converse(peer, request("sum", "7"), 0, 0, 4), List.of("7"), "sum"));
    checks.put("double", this::doubled);
    checks.put("double-cancel", this::doubleCancel);
    checks.put("log", this::log);
    checks.put("fail", this::fail);
    checks.put("unknown", peer -> refused(peer, request("no.such.procedure", "")));
    checks.put("unrouted", peer -> refused(peer, DefaultPayload.create("data")));
    checks.put("slow", this::slow);
    checks.put("slow-cancel", this::slowCancel);
    checks.put("keepalive", this::keepalive);
    checks.put("resume", this::resume);
    checks.put("lease", this::lease);
    checks.keySet().removeIf(name -> name.equals("lease") != leases);
    return checks;
  }

  private boolean runAll() {
    Map<String, String> results = new LinkedHashMap<>();
    checks().forEach((name, check) -> results.put(name, run(name, check)));
    String json =
        results.entrySet().stream()
            .map(result -> quote(result.getKey()) + ": " + quote(result.getValue()))
            .collect(Collectors.joining(", ", "{\"peer\": \"java\", \"role\": \"client\", \"checks\": {", "}}"));
    System.out.println(json);
    return results.values().stream().allMatch("ok"::equals);
  }

  private String run(String name, Check check) {
    RSocket peer = connect(name);
    try {
      check.run(peer);
      return "ok";
    } catch (Exception | AssertionError error) {
      return String.valueOf(Exceptions.unwrap(error));
    } finally {
      peer.dispose();
    }
  }

  /** A connection for a check. Most use the same settings, some need their own. */
  private RSocket connect(String check) {
    RSocketConnector connector =
        RSocketConnector.create()
            .metadataMimeType(WellKnownMimeType.MESSAGE_RSOCKET_COMPOSITE_METADATA.getString())
            .dataMimeType(WellKnownMimeType.APPLICATION_OCTET_STREAM.getString())
            .fragment(check.equals("echo-shreds") ? 64 : FRAGMENT_BYTES);
    int to = port;
    switch (check) {
      case "lease" -> connector.lease();
      case "keepalive" -> connector.keepAlive(Duration.ofMillis(200), Duration.ofMillis(1_200));
      case "resume" -> {
        connector.keepAlive(Duration.ofMillis(500), Duration.ofSeconds(5));
        connector.resume(new Resume().retry(Retry.fixedDelay(100, Duration.ofMillis(50))));
        to = cutPort;
      }
      default -> connector.keepAlive(Duration.ofSeconds(10), Duration.ofSeconds(60));
    }
    return connector.connect(Transports.client(transport, host, to)).block(ANSWER_TIMEOUT);
  }

  private void echo(RSocket peer) {
    Payload sent = Routing.request("echo", "hello".getBytes(StandardCharsets.UTF_8), "note");
    byte[] metadata = bytes(sent.sliceMetadata());
    Payload answer = answer(peer, sent);
    expect(answer.getDataUtf8(), "hello", "data");
    expect(Arrays.toString(bytes(answer.sliceMetadata())), Arrays.toString(metadata), "metadata");
  }

  private void echoSize(RSocket peer, int size) {
    byte[] data = new byte[size];
    for (int at = 0; at < size; at++) data[at] = (byte) at;
    Payload answer = peer.requestResponse(Routing.request("echo", data, null)).block(CHECK_TIMEOUT);
    expect(answer.data().readableBytes(), size, "size");
    expect(Arrays.equals(bytes(answer.sliceData()), data), true, "same data");
  }

  private void echoShreds(RSocket peer) {
    Payload sent = Routing.request("echo", new byte[10_000], "note".repeat(250));
    byte[] metadata = bytes(sent.sliceMetadata());
    Payload answer = answer(peer, sent);
    expect(answer.data().readableBytes(), 10_000, "size");
    expect(Arrays.equals(bytes(answer.sliceMetadata()), metadata), true, "same metadata");
  }

  private void countWindow(RSocket peer) {
    AtomicInteger asked = new AtomicInteger();
    AtomicInteger received = new AtomicInteger();
    Flux<Payload> items =
        Flux.from(new Window(peer.requestStream(request("count", "100")), 7, asked))
            .doOnNext(item -> expect(received.incrementAndGet() <= asked.get(), true, "within the window"));
    expect(texts(items), range(0, 100), "items");
  }

  private void countCancel(RSocket peer) throws InterruptedException {
    AtomicInteger asked = new AtomicInteger();
    AtomicInteger received = new AtomicInteger();
    Flux<Payload> items = Flux.from(new Window(peer.requestStream(request("count", "1000000")), 16, asked));
    List<Payload> taken = items.doOnNext(item -> received.incrementAndGet()).take(40).collectList().block(ANSWER_TIMEOUT);
    expect(taken.size(), 40, "items");
    alive(peer);
    Thread.sleep(300);
    expect(received.get() <= asked.get(), true, received + " items, within the window");
  }

  private void noMetadata(RSocket peer) {
    Payload item = peer.requestStream(request("count", "1")).blockFirst(ANSWER_TIMEOUT);
    expect(item.hasMetadata(), false, "has metadata");
  }

  private void blob(RSocket peer, int count, int size) {
    Flux<Payload> items = peer.requestStream(request("blob", count + "," + size)).limitRate(2);
    List<Integer> sizes = items.map(item -> item.data().readableBytes()).collectList().block(CHECK_TIMEOUT);
    expect(sizes, Collections.nCopies(count, size), "sizes");
  }

  private static List<String> converse(RSocket peer, Payload first, int from, int to, int window) {
    Flux<Payload> outgoing = Flux.range(from, to - from).map(n -> DefaultPayload.create(Integer.toString(n)));
    return texts(peer.requestChannel(outgoing.startWith(first)).limitRate(window));
  }

  private void doubled(RSocket peer) {
    List<String> wanted = range(0, 200).stream().map(text -> String.valueOf(2 * Integer.parseInt(text))).toList();
    expect(converse(peer, request("double", "0"), 1, 200, 5), wanted, "items");
  }

  private void doubleCancel(RSocket peer) {
    Flux<Payload> outgoing = Flux.range(1, 99_999).map(n -> DefaultPayload.create(Integer.toString(n)));
    Flux<Payload> items = peer.requestChannel(outgoing.startWith(request("double", "0"))).limitRate(5);
    expect(texts(items.take(10)).size(), 10, "items");
    alive(peer);
  }

  private void log(RSocket peer) {
    peer.fireAndForget(request("log", "a line")).block(ANSWER_TIMEOUT);
    alive(peer);
  }

  private void fail(RSocket peer) {
    try {
      answer(peer, request("fail", ""));
    } catch (RSocketErrorException error) {
      expect("0x" + Integer.toHexString(error.errorCode()) + " " + error.getMessage(), "0x301 boom", "code and text");
      alive(peer);
      return;
    }
    throw new AssertionError("an answer");
  }

  private void refused(RSocket peer, Payload request) {
    try {
      answer(peer, request);
    } catch (RSocketErrorException error) {
      alive(peer);
      return;
    }
    throw new AssertionError("an answer");
  }

  private void slow(RSocket peer) {
    long started = System.nanoTime();
    var slow = peer.requestResponse(request("slow", "300")).toFuture();
    alive(peer);
    expect(slow.isDone(), false, "slow is over before a later echo");
    slow.join();
    expect(System.nanoTime() - started >= 300_000_000, true, "took 300 ms");
  }

  private void slowCancel(RSocket peer) throws InterruptedException {
    Disposable call = peer.requestResponse(request("slow", "10000")).subscribe();
    Thread.sleep(50);
    call.dispose();
    alive(peer);
  }

  private void keepalive(RSocket peer) throws InterruptedException {
    Thread.sleep(3_000);
    alive(peer);
  }

  private void resume(RSocket peer) {
    Flux<Payload> items = peer.requestStream(request("count", "3000")).limitRate(20);
    Flux<String> slowly = items.map(Payload::getDataUtf8).concatMap(Client::slowly, 0);
    expect(slowly.collectList().block(CHECK_TIMEOUT), range(0, 3000), "items");
  }

  private void lease(RSocket peer) throws InterruptedException {
    long started = System.nanoTime();
    for (int calls = 0; calls < LEASE_CALLS; ) {
      try {
        answer(peer, request("echo", Integer.toString(calls)));
        calls++;
      } catch (MissingLeaseException missing) {
        // Raised on this side. A rejection by the other side is another exception, and a failure.
        Thread.sleep(20);
      }
    }
    boolean slow = System.nanoTime() - started >= LEASE_TIME.toNanos();
    expect(slow, true, "the calls took as long as the leases require");
  }

  /** Every twentieth item takes 10 ms. */
  private static Mono<String> slowly(String item) {
    Mono<String> same = Mono.just(item);
    return Integer.parseInt(item) % 20 == 0 ? same.delayElement(Duration.ofMillis(10)) : same;
  }

  private static void alive(RSocket peer) {
    expect(answer(peer, request("echo", "alive")).getDataUtf8(), "alive", "echo afterwards");
  }

  private static Payload request(String route, String data) {
    return Routing.request(route, data.getBytes(StandardCharsets.UTF_8), null);
  }

  private static Payload answer(RSocket peer, Payload request) {
    return Objects.requireNonNull(peer.requestResponse(request).block(ANSWER_TIMEOUT), "completed without a payload");
  }

  private static List<String> texts(Flux<Payload> items) {
    return items.map(Payload::getDataUtf8).collectList().block(ANSWER_TIMEOUT);
  }

  private static List<String> range(int from, int to) {
    return IntStream.range(from, to).mapToObj(Integer::toString).toList();
  }

  private static byte[] bytes(ByteBuf buffer) {
    return ByteBufUtil.getBytes(buffer);
  }

  private static void expect(Object found, Object wanted, String what) {
    if (!found.equals(wanted)) throw new AssertionError(what + ": " + cut(found) + " instead of " + cut(wanted));
  }

  private static String cut(Object value) {
    String text = String.valueOf(value);
    return text.substring(0, Math.min(80, text.length()));
  }

  private static String quote(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + '"';
  }
}
