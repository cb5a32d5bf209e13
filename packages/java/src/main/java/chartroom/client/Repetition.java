package chartroom.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Deadline;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/**
 * Adds the token to each call. Calls that may change something also get an idempotency key that all attempts share,
 * so that they are executed once. Retries unary calls.
 */
final class Repetition implements ClientInterceptor {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> IDEMPOTENCY_KEY =
      Metadata.Key.of("idempotency-key", Metadata.ASCII_STRING_MARSHALLER);

  private final String token;
  private final Duration timeout;
  private final Duration retryFor;

  Repetition(String token, Duration timeout, Duration retryFor) {
    this.token = token;
    this.timeout = timeout;
    this.retryFor = retryFor;
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    if (method.getType() != MethodType.UNARY) {
      return new AuthorizedCall<>(next.newCall(method, options));
    }
    CallOptions limited =
        options.getDeadline() != null
            ? options
            : options.withDeadline(Deadline.after(timeout.toNanos(), TimeUnit.NANOSECONDS));
    return new RepeatedCall<>(() -> next.newCall(method, limited), limited.getDeadline(), retryFor) {
      @Override
      public void start(Listener<A> listener, Metadata headers) {
        authorize(headers);
        if (!method.isSafe() && !headers.containsKey(IDEMPOTENCY_KEY))
          headers.put(IDEMPOTENCY_KEY, UUID.randomUUID().toString());
        super.start(listener, headers);
      }
    };
  }

  private void authorize(Metadata headers) {
    headers.discardAll(AUTHORIZATION);
    headers.put(AUTHORIZATION, "Bearer " + token);
  }

  private final class AuthorizedCall<Q, A> extends io.grpc.ForwardingClientCall.SimpleForwardingClientCall<Q, A> {
    AuthorizedCall(ClientCall<Q, A> call) {
      super(call);
    }

    @Override
    public void start(Listener<A> listener, Metadata headers) {
      authorize(headers);
      Runnable onOpened = Watch.ON_OPENED.get();
      super.start(onOpened == null ? listener : new OpenedListener<>(listener, onOpened), headers);
    }
  }

  private static final class OpenedListener<A> extends SimpleForwardingClientCallListener<A> {
    private final Runnable onOpened;

    OpenedListener(ClientCall.Listener<A> listener, Runnable onOpened) {
      super(listener);
      this.onOpened = onOpened;
    }

    @Override
    public void onHeaders(Metadata headers) {
      onOpened.run();
      super.onHeaders(headers);
    }
  }
}
