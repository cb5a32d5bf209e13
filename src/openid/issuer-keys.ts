import type { CryptoKey, JSONWebKeySet, JWTVerifyGetKey } from "jose";
import { MAX_RESPONSE_BYTES } from "../scm/bounded-fetch.ts";
import { type RequestLimits, sendRequest } from "../scm/host-request.ts";

/** An issuer, and whether it may be at a non-public address. */
export interface IssuerAddress {
  readonly issuer: string;
  readonly allowPrivateAddresses: boolean;
}

/** Time for which keys are cached; a key that the issuer has revoked is accepted until then. */
export const KEYS_MS = 15 * 60_000;

/** Minimum time between two requests for an unknown key, or to an issuer that has failed. */
export const MIN_REFETCH_MS = 30_000;

const LIMITS: RequestLimits = { timeoutMs: 10_000, responseBytes: MAX_RESPONSE_BYTES };

const OK = 200;

/** The keys of an issuer, or the reason why there are none. */
interface KeyRequest {
  readonly at: number;
  readonly keys: Promise<JWTVerifyGetKey>;
  hasFailed: boolean;
}

/**
 * Creates the function that finds the key of an issuer's token. Requests to the issuer have the same restrictions as
 * those to remotes: addresses are checked, redirects are not followed, and time and size are limited. The first request
 * is sent with the first token.
 *
 * @param now returns milliseconds since 1970 UTC
 */
export function createIssuerKeys(asked: IssuerAddress, now: () => number): JWTVerifyGetKey {
  let last: KeyRequest | undefined;
  /** The newest request that has completed. */
  let answered: KeyRequest | undefined;
  const ask = (): KeyRequest => {
    const next: KeyRequest = { at: now(), keys: findKeys(asked), hasFailed: false };
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
  const current = (): KeyRequest => {
    // Cached keys are used even while a request runs or fails: anyone can cause requests by naming an unknown key.
    if (answered && now() - answered.at < KEYS_MS) return answered;
    if (!last || now() - last.at >= (last.hasFailed ? MIN_REFETCH_MS : KEYS_MS)) return ask();
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
      // The issuer may have a new key by now. Unknown keys do not cause more requests than the interval allows.
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      const newest = last && now() - last.at < MIN_REFETCH_MS ? last : ask();
      if (newest === used) throw error;
      return (await (
        await newest.keys
      )(header, token)) as CryptoKey;
    }
  };
}

async function findKeys(asked: IssuerAddress): Promise<JWTVerifyGetKey> {
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
  { issuer, allowPrivateAddresses }: IssuerAddress,
  place: string,
): Promise<Readonly<Record<string, unknown>>> {
  const url = URL.parse(place);
  // Plain http only if the settings use it for the issuer itself, which is then on this machine.
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
    // Reported below, without the content of the response.
  }
  throw new Error(`${url.host} answered no JSON object`);
}
