/**
 * Why a source-control host did not do what was asked.
 *
 * - `unauthorized`: the host does not take the token.
 * - `forbidden`: it knows the token, which may not do this.
 * - `not_found`: no such repository, or none that the token may see.
 * - `validation`: it refuses what was sent; the message says what it says.
 * - `rate_limited`: too many requests; `retryAfterMs` says how long to wait.
 * - `unavailable`: it cannot be reached, is too slow, or fails on its side.
 * - `unreadable`: it answers something else than its API says, or too much.
 * - `refused`: nothing was sent, because of where it would have gone.
 * - `unsupported`: it speaks none of the APIs that are known here.
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

/** A failure at a source-control host. Its message names the host, holds no secret and can be shown to people. */
export class ScmFailure extends Error {
  override readonly name = "ScmFailure";
  readonly kind: ScmFailureKind;
  readonly host: string;
  /** How long to wait before the next try; always there for `rate_limited`, sometimes for `unavailable`. */
  readonly retryAfterMs: number | undefined;

  /**
   * @param told what happened, so that it completes "git.example.org ..."
   * @param options.cause the error of the connection, for those who need its code
   */
  constructor(
    kind: ScmFailureKind,
    host: string,
    told: string,
    options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(`${host} ${told}`, { cause: options.cause });
    this.kind = kind;
    this.host = host;
    this.retryAfterMs = options.retryAfterMs;
  }

  /** Whether the same request may succeed later. */
  get retriable(): boolean {
    return this.kind === "unavailable" || this.kind === "rate_limited";
  }
}
