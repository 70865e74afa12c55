package interop;

import io.rsocket.Payload;
import java.util.concurrent.atomic.AtomicInteger;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscriber;
import org.reactivestreams.Subscription;

/** A stream that requests {@code window} items at a time, and the next ones after all of them have arrived. */
record Window(Publisher<Payload> source, int window, AtomicInteger asked) implements Publisher<Payload> {
  @Override
  public void subscribe(Subscriber<? super Payload> downstream) {
    source.subscribe(new Asking(downstream));
  }

  private final class Asking implements Subscriber<Payload>, Subscription {
    private final Subscriber<? super Payload> downstream;
    private Subscription upstream;
    private int received;

    private Asking(Subscriber<? super Payload> downstream) {
      this.downstream = downstream;
    }

    @Override
    public void onSubscribe(Subscription subscription) {
      upstream = subscription;
      downstream.onSubscribe(this);
      ask();
    }

    private void ask() {
      asked.addAndGet(window);
      upstream.request(window);
    }

    @Override
    public void onNext(Payload item) {
      received++;
      downstream.onNext(item);
      if (received == asked.get()) ask();
    }

    @Override
    public void onError(Throwable error) {
      downstream.onError(error);
    }

    @Override
    public void onComplete() {
      downstream.onComplete();
    }

    @Override
    public void request(long n) {
      // Only the window limits the items; the collector takes all.
    }

    @Override
    public void cancel() {
      upstream.cancel();
    }
  }
}
