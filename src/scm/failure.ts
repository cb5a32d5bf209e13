/**
 * The reason why a request to a source-control host failed.
 *
 * - `unauthorized`: the host does not accept the token.
 * - `forbidden`: it accepts the token, but the token does not permit the request.
 * - `not_found`: the repository does not exist, or the token may not see it.
 * - `validation`: it refuses the content of the request; the message quotes its
 *   reason.
 * - `rate_limited`: too many requests; `retryAfterMs` is the time to wait.
 * - `unavailable`: it cannot be reached, is too slow, or fails on its side.
 * - `unreadable`: its response does not follow its API, or is too large.
 * - `refused`: nothing was sent, because its destination is not allowed.
 * - `unsupported`: it speaks none of the known APIs.
 */
export type ScmFailureKind =
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "validation"
  | "rate_limited"
  | "unavailable"
  | "unreadable"
  | "refused"
  | "unsupported";

/**
 * A failure at a source-control host. Its message names the host, holds no secret
 * and can be shown to people.
 */
export class ScmFailure extends Error {
  override readonly name = "ScmFailure";
  readonly kind: ScmFailureKind;
  readonly host: string;
  /**
   * The time to wait before the next attempt, in milliseconds; always set for
   * `rate_limited`, sometimes for `unavailable`.
   */
  readonly retryAfterMs: number | undefined;

  /**
   * @param event what happened, as text that completes "git.example.org ..."
   * @param options.cause the error of the connection, for callers that need its
   *   code
   */
  constructor(
    kind: ScmFailureKind,
    host: string,
    event: string,
    options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(`${host} ${event}`, { cause: options.cause });
    this.kind = kind;
    this.host = host;
    this.retryAfterMs = options.retryAfterMs;
  }

  /** Returns whether the same request may succeed later. */
  get retriable(): boolean {
    return this.kind === "unavailable" || this.kind === "rate_limited";
  }
}
