/** The limits for one connection and one request. Times are in milliseconds, sizes in bytes. */
export interface ListenerLimits {
  /**
   * Maximum time from the acceptance of a connection, or from the first byte of a
   * later request on it, until the headers of a request are complete. The TLS
   * handshake and the wait for the first byte are part of it.
   */
  readonly headersTimeoutMs: number;
  /** Maximum time for which an HTTP/1.1 connection waits for its next request. */
  readonly keepAliveTimeoutMs: number;
  /** Maximum time for which an HTTP/2 connection may have no open stream, whatever else it sends. */
  readonly idleSessionMs: number;
  /**
   * Maximum time without a byte of a request body. The rate of a body is not
   * checked until this much time has passed since its start.
   */
  readonly bodyIdleMs: number;
  /** Minimum average rate of a request body after that time. */
  readonly bodyMinBytesPerSecond: number;
  /** Maximum size of the header block of a request, in both protocols. */
  readonly maxHeaderBytes: number;
  /** Maximum number of requests that one HTTP/2 connection may have open at once. */
  readonly maxConcurrentStreams: number;
  /** Number of invalid frames of HTTP/2 after which the connection is closed. */
  readonly maxInvalidFrames: number;
  /**
   * Number of streams over the limit after which the connection is closed; a
   * client may not know the limit at first.
   */
  readonly maxRejectedStreams: number;
  /**
   * Time for which a connection that is being closed continues to read, so that
   * the client gets the response and not a reset: closing a socket with unread
   * bytes makes the kernel discard sent bytes.
   */
  readonly discardMs: number;
  /** Maximum size of an unwanted body that is read in that time. */
  readonly discardBytes: number;
  /** Maximum time to send the refusal of a body that came too slowly. */
  readonly flushMs: number;
  /** Time for accepted requests to finish when the server is stopped. */
  readonly drainMs: number;
  /** Interval at which these times are checked, and therefore their precision. */
  readonly checkIntervalMs: number;
  /** Returns a monotonic time in milliseconds. */
  readonly now: () => number;
}

/** The limits of a server that faces a network. */
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
  drainMs: 10_000,
  checkIntervalMs: 500,
  now: () => performance.now(),
};
