import type { CryptoKey, JSONWebKeySet, JWTVerifyGetKey } from "jose";
import { sendRequest } from "../scm/host-request.ts";
import type { ScmLimits } from "../scm/settings.ts";

/** An issuer, and whether it may be at an address that is not public. */
export interface AskedIssuer {
  readonly issuer: string;
  readonly allowPrivateAddresses: boolean;
}

/** Time for which keys are used without asking again: so long holds one that the issuer has taken back. */
export const KEYS_MS = 15 * 60_000;

/** Time between two questions for a key that is not there, or to an issuer that has failed. */
export const ASK_AGAIN_MS = 30_000;

/** Discovery and keys of large issuers are below 100 kB. */
const LIMITS: ScmLimits = { timeoutMs: 10_000, responseBytes: 512 * 1_024, knownHosts: 0 };

const OK = 200;

/** The keys of an issuer, or why there are none. */
interface Asked {
  readonly at: number;
  readonly keys: Promise<JWTVerifyGetKey>;
  hasFailed: boolean;
}

/**
 * Creates the function that finds the key of an issuer's token. It asks the issuer as remotes are asked: the addresses are
 * checked, nothing redirects, and time and size have a bound. Nothing is asked before the first token.
 *
 * @param now returns milliseconds since 1970 UTC
 */
export function createIssuerKeys(asked: AskedIssuer, now: () => number): JWTVerifyGetKey {
  let last: Asked | undefined;
  /** The newest question that was answered. */
  let answered: Asked | undefined;
  const ask = (): Asked => {
    const next: Asked = { at: now(), keys: findKeys(asked), hasFailed: false };
    next.keys.then(
      () => {
        answered = next;
      },
      () => {
        next.hasFailed = true;
      },
    );
    last = next;
    return next;
  };
  const current = (): Asked => {
    // Also while it is asked again, or cannot be: anybody can name a key that is not there, and so have it asked.
    if (answered && now() - answered.at < KEYS_MS) return answered;
    if (!last || now() - last.at >= (last.hasFailed ? ASK_AGAIN_MS : KEYS_MS)) return ask();
    return last;
  };
  return async (header, token): Promise<CryptoKey> => {
    const { errors } = await import("jose");
    const used = current();
    try {
      return (await (
        await used.keys
      )(header, token)) as CryptoKey;
    } catch (error) {
      // The issuer may have another key by now. Callers that name unknown keys have it asked no more often.
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      const newest = last && now() - last.at < ASK_AGAIN_MS ? last : ask();
      if (newest === used) throw error;
      return (await (
        await newest.keys
      )(header, token)) as CryptoKey;
    }
  };
}

async function findKeys(asked: AskedIssuer): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet } = await import("jose");
  const { issuer } = asked;
  const discovered = await askFor(asked, `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (discovered.issuer !== issuer) {
    throw new Error(`the discovery of ${issuer} names another issuer`);
  }
  const place = typeof discovered.jwks_uri === "string" ? discovered.jwks_uri : "";
  return createLocalJWKSet((await askFor(asked, place)) as unknown as JSONWebKeySet);
}

async function askFor(
  { issuer, allowPrivateAddresses }: AskedIssuer,
  place: string,
): Promise<Readonly<Record<string, unknown>>> {
  const url = URL.parse(place);
  // Plain http only where the settings name it for the issuer itself, which is of this machine then.
  const isPlain = url?.protocol === "http:" && issuer.startsWith("http:");
  if (!url || (url.protocol !== "https:" && !isPlain))
    throw new Error(`${issuer} names keys that are not at https`);
  const settings = { allowPrivateAddresses, plainHttpHosts: new Set<string>() };
  const res = await sendRequest({ host: url.host, method: "GET", url, headers: {} }, settings, LIMITS);
  if (res.status !== OK)
    throw new Error(`${url.host} answered ${res.status} instead of what tokens are verified with`);
  try {
    const value: unknown = JSON.parse(res.text);
    if (typeof value === "object" && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // Reported below, without what it sent.
  }
  throw new Error(`${url.host} answered no JSON object`);
}
