import type { JWTPayload, JWTVerifyGetKey } from "jose";
import {
  ExchangeRefused,
  ISSUER_SKEW_SECONDS,
  type MachineClaims,
} from "../domain/identity/machine/machine-token.ts";
import { createIssuerKeys, type IssuerAddress } from "./issuer-keys.ts";

/** An issuer in the settings. */
export interface IssuerSettings extends IssuerAddress {
  readonly audiences: readonly string[];
  readonly maxSeconds: number;
  readonly mayOutlive: boolean;
}

/** Verifies the tokens of issuers. */
export interface MachineTokens {
  /**
   * Returns the claims of a token after verifying its signature, issuer, audience and times.
   * @throws ExchangeRefused
   */
  read(token: string): Promise<MachineClaims>;
  /** From now on accepts only tokens of these issuers; their keys are fetched again. */
  use(issuers: readonly IssuerSettings[]): void;
  /** Returns the issuers whose tokens are accepted. */
  issuers(): readonly IssuerSettings[];
}

/** Accepted signature algorithms: only asymmetric ones, so neither HMAC nor `none`. */
const SIGNATURES = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

/** Maximum remaining lifetime of an issuer's token: the record of its exchange is kept for as long. */
const MAX_VALID_SECONDS = 24 * 3_600;

/**
 * Creates the verifier of tokens of the issuers in the settings.
 * @param now returns milliseconds since 1970 UTC
 */
export function createMachineTokens(issuers: readonly IssuerSettings[], now: () => number): MachineTokens {
  const withKeys = (of: readonly IssuerSettings[]) =>
    new Map(of.map((each) => [each.issuer, { ...each, keys: createIssuerKeys(each, now) }]));
  let known = withKeys(issuers);
  return {
    use(changed) {
      known = withKeys(changed);
    },
    issuers: () => [...known.values()],
    async read(token) {
      const named = await issuerOf(token);
      const issuer = named === undefined ? undefined : known.get(named);
      if (!issuer) throw refused("the settings of the server name no issuer of this token");
      const claims = await verify(token, issuer, issuer.keys, now());
      const { sub, jti, exp = 0, aud = [] } = claims;
      return {
        issuer: issuer.issuer,
        audiences: [aud].flat().filter((each) => issuer.audiences.includes(each)),
        subject: typeof sub === "string" ? sub : "",
        tokenId: jti,
        // Times may have fractions of a second (RFC 7519, 2).
        expiresAt: Math.floor(exp * 1000),
        all: claims,
        maxSeconds: issuer.maxSeconds,
        mayOutlive: issuer.mayOutlive,
      };
    },
  };
}

/** Returns the issuer that a token names; nothing of the token is verified yet. */
async function issuerOf(token: string): Promise<string | undefined> {
  const { decodeJwt } = await import("jose");
  try {
    const { iss } = decodeJwt(token);
    return typeof iss === "string" ? iss : undefined;
  } catch (cause) {
    throw refused("this is no token of an issuer: send a signed JWT", cause);
  }
}

async function verify(
  token: string,
  { issuer, audiences }: IssuerSettings,
  keys: JWTVerifyGetKey,
  at: number,
): Promise<JWTPayload> {
  const { jwtVerify } = await import("jose");
  let claims: JWTPayload;
  try {
    const verified = await jwtVerify(token, keys, {
      algorithms: SIGNATURES,
      issuer,
      audience: [...audiences],
      clockTolerance: ISSUER_SKEW_SECONDS,
      requiredClaims: ["exp", "iat"],
      currentDate: new Date(at),
    });
    claims = verified.payload;
  } catch (cause) {
    throw refusalOf(cause);
  }
  const { iat = 0, exp = 0, jti } = claims;
  if (iat > at / 1000 + ISSUER_SKEW_SECONDS) throw refused("the token was issued in the future");
  if (exp > at / 1000 + MAX_VALID_SECONDS)
    throw refused("the token is valid for more than a day: request one with a shorter life");
  if (jti !== undefined && typeof jti !== "string") throw refused("the claim jti of the token is no text");
  return claims;
}

/** The reason why a token is refused, by the code of the library's error. */
const REASONS: Readonly<Record<string, string>> = {
  ERR_JWT_EXPIRED: "the token has ended",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "the signature of the token is not its issuer's",
  ERR_JOSE_ALG_NOT_ALLOWED: "the token is signed in a way that is not taken",
  ERR_JOSE_NOT_SUPPORTED: "the token is signed in a way that is not taken",
  ERR_JWKS_NO_MATCHING_KEY: "the token names a key that its issuer does not have",
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: "the token does not say which key of its issuer has signed it",
};

function refusalOf(cause: unknown): ExchangeRefused {
  const { code, claim } = cause as { readonly code?: unknown; readonly claim?: unknown };
  if (code === "ERR_JWT_CLAIM_VALIDATION_FAILED") {
    return refused(`the claim ${String(claim)} of the token is missing or not what it must be`, cause);
  }
  const reason = typeof code === "string" && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  if (reason !== undefined) return refused(reason, cause);
  if (typeof code === "string" && /^ERR_(?:JW|JOSE)/.test(code) && code !== "ERR_JWKS_INVALID") {
    return refused("the token is not well-formed", cause);
  }
  return new ExchangeRefused("temporarily_unavailable", "the keys of the token's issuer cannot be had now", {
    cause,
  });
}

function refused(message: string, cause?: unknown): ExchangeRefused {
  return new ExchangeRefused("invalid_grant", message, { cause });
}
