package chartroom.client;

import chartroom.service.v1.StreamActionLogsRequest;
import chartroom.service.v1.StreamActionLogsResponse;
import chartroom.service.v1.WatchAgentExecutionRequest;
import chartroom.service.v1.WatchAgentExecutionResponse;
import chartroom.service.v1.WatchEventsRequest;
import chartroom.service.v1.WatchEventsResponse;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.TlsChannelCredentials;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Calls a server as the owner of a token. Each service of the contract is a method that returns its blocking stub,
 * which retries calls without executing them twice. May be used by several threads.
 */
public final class Chartroom extends Services implements AutoCloseable {
  /** A page may have 4 MiB, which is the default limit of gRPC. */
  private static final int MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

  private final ManagedChannel channel;
  private final Duration retryFor;

  private Chartroom(ManagedChannel channel, Builder builder) {
    super(channel, new Repetition(builder.token, builder.timeout, builder.retryFor));
    this.channel = channel;
    this.retryFor = builder.retryFor;
  }

  /**
   * Returns a client of the server at an address such as {@code https://chartroom.example.org}; it connects at its
   * first call.
   */
  public static Chartroom connect(String address, String token) {
    return builder(address, token).build();
  }

  /** Returns the builder of a client with its own settings. */
  public static Builder builder(String address, String token) {
    return new Builder(address, token);
  }

  /**
   * Returns the events of the organization, and resumes after the last one when the stream is interrupted. Without
   * {@code after_sequence} they start at the present, and do so again when the stream is interrupted before its first
   * message.
   */
  public Watch<WatchEventsResponse> watchEvents(WatchEventsRequest request) {
    return new Watch<>(new Places.Events(request, event()::watchEvents), retryFor);
  }

  /**
   * Returns the output of an agent, and resumes after the last block when the stream is interrupted: the run itself
   * comes first then. Ends when the run has.
   */
  public Watch<WatchAgentExecutionResponse> watchAgentExecution(WatchAgentExecutionRequest request) {
    return new Watch<>(new Places.Agent(request, agent()::watchAgentExecution), retryFor);
  }

  /** Returns the output of an action, and resumes after the last piece when the stream is interrupted. */
  public Watch<StreamActionLogsResponse> streamActionLogs(StreamActionLogsRequest request) {
    return new Watch<>(new Places.Logs(request, workflow()::streamActionLogs), retryFor);
  }

  /** Closes the connection. Open calls and streams end with an error. */
  @Override
  public void close() {
    channel.shutdownNow();
  }

  /** Settings of a client. */
  public static final class Builder {
    private final URI address;
    private final String token;
    private Duration timeout = Duration.ofMinutes(1);
    private Duration retryFor = Duration.ofSeconds(30);
    private ChannelCredentials credentials = TlsChannelCredentials.create();

    private Builder(String address, String token) {
      this.address = URI.create(address);
      this.token = token;
      if (!token.matches("[\\x21-\\x7e]*"))
        throw new IllegalArgumentException("the token has characters that no token has, such as the end of a line");
      String scheme = this.address.getScheme();
      boolean isUrl = "http".equals(scheme) || "https".equals(scheme);
      if (!isUrl || this.address.getHost() == null)
        throw new IllegalArgumentException("the address of a server is a URL such as https://chartroom.example.org");
      if (!this.address.getPath().matches("/?(api/?)?"))
        throw new IllegalArgumentException("gRPC cannot use the path of an address");
    }

    /** Sets how long a call without a deadline may take, including retries. The default is a minute. */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    /** Sets for how long a failing call or stream is retried. The default is 30 seconds. Zero tries once. */
    public Builder retryFor(Duration retryFor) {
      this.retryFor = retryFor;
      return this;
    }

    /** Uses other TLS credentials, for a server whose certificate the machine does not trust. */
    public Builder credentials(ChannelCredentials credentials) {
      this.credentials = credentials;
      return this;
    }

    /** Returns the client. */
    public Chartroom build() {
      boolean isSecure = address.getScheme().equals("https");
      int port = address.getPort() != -1 ? address.getPort() : isSecure ? 443 : 80;
      ManagedChannel channel =
          Grpc.newChannelBuilderForAddress(
                  address.getHost(), port, isSecure ? credentials : InsecureChannelCredentials.create())
              .userAgent("chartroom-java/" + VERSION)
              .maxInboundMessageSize(MAX_MESSAGE_BYTES)
              .keepAliveTime(30, TimeUnit.SECONDS)
              .keepAliveTimeout(10, TimeUnit.SECONDS)
              // This client's own retries have idempotency keys.
              .disableRetry()
              .build();
      return new Chartroom(channel, this);
    }
  }
}
