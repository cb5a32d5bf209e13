package chartroom.client;

import io.grpc.Context;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The messages of a stream. After an interruption the stream is opened again after the last message, so none is lost
 * or repeated. {@link #hasNext} waits for a message; it throws a StatusRuntimeException when the server rejects the
 * stream, or was unreachable for too long. Used by one thread; another may close it, which ends it.
 */
public final class Watch<T> implements Iterator<T>, AutoCloseable {
  /** A stream that was open for this long has reached the server, even if it received nothing. */
  private static final long REACHED_NANOS = TimeUnit.SECONDS.toNanos(5);

  /** What a call runs once the headers of its response have arrived. */
  static final Context.Key<Runnable> ON_OPENED = Context.key("chartroom-on-opened");

  private final Place<T> place;
  private final Duration retryFor;
  private final Context.CancellableContext context =
      Context.current().withValue(ON_OPENED, this::noteOpened).withCancellation();
  private final CountDownLatch closed = new CountDownLatch(1);
  private Iterator<T> stream;
  private T next;
  private volatile boolean isOpen;
  private volatile long opened;
  private int failures;
  private long failingSince;

  Watch(Place<T> place, Duration retryFor) {
    this.place = place;
    this.retryFor = retryFor;
  }

  @Override
  public boolean hasNext() {
    while (next == null && closed.getCount() > 0) {
      StatusRuntimeException interruption;
      try {
        if (stream == null) open();
        if (stream.hasNext()) {
          Object before = place.position();
          next = place.take(stream.next());
          if (!place.position().equals(before)) failures = 0;
          continue;
        }
        if (place.isComplete()) {
          close();
          break;
        }
        interruption = Status.UNAVAILABLE.withDescription("the stream has ended early").asRuntimeException();
      } catch (StatusRuntimeException error) {
        if (closed.getCount() == 0) break;
        interruption = error;
      }
      stream = null;
      pause(interruption);
    }
    return next != null;
  }

  @Override
  public T next() {
    if (!hasNext()) throw new NoSuchElementException();
    T message = next;
    next = null;
    return message;
  }

  /** Ends the stream: a waiting {@link #hasNext} returns false. */
  @Override
  public void close() {
    closed.countDown();
    context.cancel(null);
  }

  private void open() {
    isOpen = false;
    Context before = context.attach();
    try {
      stream = place.open();
    } finally {
      context.detach(before);
    }
  }

  private void noteOpened() {
    opened = System.nanoTime();
    isOpen = true;
  }

  private void pause(StatusRuntimeException interruption) {
    Failure failure = Failure.of(interruption);
    long now = System.nanoTime();
    if (failures == 0 || isOpen && now - opened > REACHED_NANOS) {
      failures = 0;
      failingSince = now;
    }
    failures += 1;
    Duration wait = Retries.pauseAfter(failure, failures);
    boolean isLate = now + wait.toNanos() - failingSince > retryFor.toNanos();
    if (isLate || !Retries.isTemporary(failure, interruption.getCause())) {
      close();
      throw interruption;
    }
    try {
      closed.await(wait.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      close();
    }
  }
}
