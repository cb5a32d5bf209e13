/** What one connection and one request may take of the server. Times are in milliseconds, sizes in bytes. */
export interface ListenerLimits {
  /**
   * From the acceptance of a connection, or from the first byte of a later request on it, until the headers
   * of a request are complete. The TLS handshake and the wait for the first byte are part of it.
   */
  readonly headersTimeoutMs: number;
  /** How long an HTTP/1.1 connection waits for its next request. */
  readonly keepAliveTimeoutMs: number;
  /** How long an HTTP/2 connection may have no open stream, whatever else it sends. */
  readonly idleSessionMs: number;
  /**
   * How long a request body may bring nothing. It is also the time from the body's begin during which its
   * rate does not matter.
   */
  readonly bodyIdleMs: number;
  /** Least average rate of a request body after that time. */
  readonly bodyMinBytesPerSecond: number;
  /** Largest header block of a request, in both protocols. */
  readonly maxHeaderBytes: number;
  /** Requests that one HTTP/2 connection may have open at once. */
  readonly maxConcurrentStreams: number;
  /** Invalid frames of HTTP/2 after which the connection is closed. */
  readonly maxInvalidFrames: number;
  /** Streams over the limit after which the connection is closed; a client may not know the limit at first. */
  readonly maxRejectedStreams: number;
  /**
   * How long a connection that is to be closed goes on reading, so that the client finds the answer and not
   * a reset: closing a socket with unread bytes makes the kernel throw away what was sent.
   */
  readonly discardMs: number;
  /** How much of an unwanted body is read in that time. */
  readonly discardBytes: number;
  /** How long the refusal of a body that came too slowly may take to leave. */
  readonly flushMs: number;
  /** How often all of these times are looked at; they are exact to this much. */
  readonly checkIntervalMs: number;
  /** Time in milliseconds from any fixed moment, never going back. */
  readonly now: () => number;
}

/** Limits of a server that faces a network. */
export const LISTENER_LIMITS: ListenerLimits = {
  headersTimeoutMs: 6_000,
  keepAliveTimeoutMs: 60_000,
  idleSessionMs: 300_000,
  bodyIdleMs: 16_000,
  bodyMinBytesPerSecond: 64_000,
  maxHeaderBytes: 16_384,
  maxConcurrentStreams: 256,
  maxInvalidFrames: 16,
  maxRejectedStreams: 64,
  discardMs: 400,
  discardBytes: 262_144,
  flushMs: 1_000,
  checkIntervalMs: 500,
  now: () => performance.now(),
};
