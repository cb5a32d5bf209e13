/** The longest time for which a token holds that a trust gave: one hour. */
export const MACHINE_TOKEN_MAX_SECONDS = 3_600;

/** Bound of the difference between our clock and an issuer's, either way. */
export const ISSUER_SKEW_SECONDS = 30;

/** Tokens of a service account that hold at the same time and come of trusts. */
export const MAX_MACHINE_TOKENS = 1_000;

/** Why a token of an issuer is not exchanged, in words of RFC 6749, 5.2, and in a sentence. */
export class ExchangeRefused extends Error {
  override readonly name = "ExchangeRefused";
  readonly problem: "invalid_grant" | "temporarily_unavailable";

  /** @param message for the sender; never with anything of the token but the names of claims */
  constructor(problem: ExchangeRefused["problem"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}

/** The claims of an issuer about a machine, in a token whose signature, issuer, audience and times were verified. */
export interface MachineClaims {
  readonly issuer: string;
  readonly audiences: readonly string[];
  /** Empty where the issuer names none. */
  readonly subject: string;
  /** The id of the token at the issuer; undefined where it has none. */
  readonly tokenId: string | undefined;
  /** Milliseconds since 1970 UTC. */
  readonly expiresAt: number;
  readonly all: Readonly<Record<string, unknown>>;
  /** The most seconds for which a token of ours holds. */
  readonly maxSeconds: number;
  /** True where it may hold for longer than the issuer's token. */
  readonly mayOutlive: boolean;
}

/**
 * Returns the end of a token that is given for another at `now`; all times in milliseconds since 1970 UTC.
 * @param validUntil end of the service account
 */
export function machineTokenEnd(
  { expiresAt, maxSeconds, mayOutlive }: Pick<MachineClaims, "expiresAt" | "maxSeconds" | "mayOutlive">,
  validUntil: number,
  now: number,
): number {
  const seconds = Math.min(maxSeconds, MACHINE_TOKEN_MAX_SECONDS);
  // The issuer's clock may be behind by as much as its token is taken after its end.
  const ofIssuer = mayOutlive ? Number.POSITIVE_INFINITY : expiresAt + ISSUER_SKEW_SECONDS * 1000;
  return Math.min(now + seconds * 1000, ofIssuer, validUntil);
}
