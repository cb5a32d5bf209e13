package chartroom.client;

import io.grpc.ClientCall;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** A unary call that is retried when that may help. Its listener gets only the response of the last attempt. */
class RepeatedCall<Q, A> extends ClientCall<Q, A> {
  private static final ScheduledExecutorService TIMER =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "chartroom-retries");
            thread.setDaemon(true);
            return thread;
          });

  private final Supplier<ClientCall<Q, A>> attempts;
  private final Deadline deadline;
  private final Duration retryFor;
  private final long began = System.nanoTime();

  private Listener<A> listener;
  private Metadata headers;
  private Q message;
  private boolean isCompressed = true;
  private int requested;

  // The caller's thread, that of an attempt, and the timer change the following fields.
  private ClientCall<Q, A> attempt;
  private ScheduledFuture<?> pause;
  private int failures;
  private boolean isOver;

  RepeatedCall(Supplier<ClientCall<Q, A>> attempts, Deadline deadline, Duration retryFor) {
    this.attempts = attempts;
    this.deadline = deadline;
    this.retryFor = retryFor;
  }

  @Override
  public void start(Listener<A> listener, Metadata headers) {
    this.listener = listener;
    this.headers = headers;
  }

  @Override
  public void request(int count) {
    requested += count;
  }

  @Override
  public void sendMessage(Q message) {
    this.message = message;
  }

  @Override
  public void setMessageCompression(boolean isCompressed) {
    this.isCompressed = isCompressed;
  }

  /** The request is complete now, since the stubs send one message and its end. */
  @Override
  public void halfClose() {
    begin();
  }

  @Override
  public void cancel(String reason, Throwable cause) {
    ClientCall<Q, A> open;
    synchronized (this) {
      if (isOver) return;
      boolean isPausing = pause != null && pause.cancel(false);
      if (attempt == null || isPausing) isOver = true;
      open = isOver ? null : attempt;
    }
    if (open != null) open.cancel(reason, cause);
    else if (listener != null)
      listener.onClose(Status.CANCELLED.withDescription(reason).withCause(cause), new Metadata());
  }

  private void begin() {
    ClientCall<Q, A> call;
    synchronized (this) {
      if (isOver) return;
      pause = null;
      call = attempts.get();
      attempt = call;
    }
    Metadata copy = new Metadata();
    copy.merge(headers);
    call.start(new Attempt(), copy);
    call.request(Math.max(requested, 2));
    call.setMessageCompression(isCompressed);
    call.sendMessage(message);
    call.halfClose();
  }

  /** Holds a response until it is known to be the last. */
  private final class Attempt extends Listener<A> {
    private Metadata answerHeaders;
    private A answer;

    @Override
    public void onHeaders(Metadata headers) {
      answerHeaders = headers;
    }

    @Override
    public void onMessage(A message) {
      answer = message;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      if (!status.isOk() && answer == null && isRepeated(status, trailers)) return;
      synchronized (RepeatedCall.this) {
        isOver = true;
      }
      if (answerHeaders != null) listener.onHeaders(answerHeaders);
      if (answer != null) listener.onMessage(answer);
      listener.onClose(status, trailers);
    }

    private boolean isRepeated(Status status, Metadata trailers) {
      Metadata all = new Metadata();
      if (answerHeaders != null) all.merge(answerHeaders);
      all.merge(trailers);
      Failure failure = Failure.of(status, all);
      if (!Retries.isTemporary(failure, status.getCause())) return false;
      synchronized (RepeatedCall.this) {
        failures += 1;
        Duration wait = Retries.pauseAfter(failure, failures);
        boolean isLate = System.nanoTime() - began + wait.toNanos() > retryFor.toNanos();
        if (isLate || wait.toNanos() > deadline.timeRemaining(TimeUnit.NANOSECONDS)) return false;
        pause = TIMER.schedule(RepeatedCall.this::begin, wait.toNanos(), TimeUnit.NANOSECONDS);
        return true;
      }
    }
  }
}
