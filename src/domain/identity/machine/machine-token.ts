/** Maximum lifetime of a token that is issued by a trust: one hour. */
export const MACHINE_TOKEN_MAX_SECONDS = 3_600;

/** Maximum difference between the server's clock and an issuer's, in either direction. */
export const ISSUER_SKEW_SECONDS = 30;

/** Maximum number of valid tokens of a service account that were issued by trusts. */
export const MAX_MACHINE_TOKENS = 1_000;

/** The reason why an issuer's token is not exchanged: an error code of RFC 6749, 5.2, and a sentence. */
export class ExchangeRefused extends Error {
  override readonly name = "ExchangeRefused";
  readonly problem: "invalid_grant" | "temporarily_unavailable";

  /** @param message text for the sender; of the token it contains at most names of claims */
  constructor(problem: ExchangeRefused["problem"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}

/** The claims of an issuer about a machine, in a token whose signature, issuer, audience and times were verified. */
export interface MachineClaims {
  readonly issuer: string;
  readonly audiences: readonly string[];
  /** Empty if the issuer names none. */
  readonly subject: string;
  /** The id of the token at the issuer; undefined if it has none. */
  readonly tokenId: string | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly expiresAt: number;
  readonly all: Readonly<Record<string, unknown>>;
  /** Maximum lifetime of the issued token, in seconds. */
  readonly maxSeconds: number;
  /** True if the issued token may be valid for longer than the issuer's token. */
  readonly mayOutlive: boolean;
}

/**
 * Returns the end of a token that is issued at `now` in exchange for another; times in milliseconds since 1970 UTC.
 * @param validUntil end of the service account
 */
export function machineTokenEnd(
  { expiresAt, maxSeconds, mayOutlive }: Pick<MachineClaims, "expiresAt" | "maxSeconds" | "mayOutlive">,
  validUntil: number,
  now: number,
): number {
  const seconds = Math.min(maxSeconds, MACHINE_TOKEN_MAX_SECONDS);
  // The issuer's clock may be behind, so its token is accepted for ISSUER_SKEW_SECONDS after its end.
  const ofIssuer = mayOutlive ? Number.POSITIVE_INFINITY : expiresAt + ISSUER_SKEW_SECONDS * 1000;
  return Math.min(now + seconds * 1000, ofIssuer, validUntil);
}
