import type { JWTVerifyGetKey, jwtVerify } from "jose";
import type * as OpenId from "openid-client";
import {
  mergeClaims,
  type ProviderClaims,
  readClaims,
  SignInRefused,
} from "../domain/identity/sign-in/provider.ts";
import {
  CLOCK_TOLERANCE_SECONDS,
  type ProviderLogoutClaims,
  requireLogout,
} from "../domain/identity/sign-in/provider-session.ts";
import { fetchBounded } from "../scm/bounded-fetch.ts";

/** The server's registration at a provider. */
export interface ProviderRegistration {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  readonly clientAuthentication: "basic" | "post";
  readonly scopes: readonly string[];
}

/** The state that the browser keeps, sealed, from the beginning of a sign-in to its end. */
export interface SignInFlow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The client of a sign-in provider. */
export interface ProviderClient {
  /** Returns the URL of the provider's page for a sign-in that returns to `redirectUri`. @throws SignInRefused */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly flow: SignInFlow }>;
  /**
   * Exchanges the code of the provider's response for the person's claims, after every check of OpenID Connect.
   * @param answer the URL to which the provider has redirected the browser, with its query
   * @throws SignInRefused
   */
  finish(answer: URL, flow: SignInFlow): Promise<ProviderClaims>;
  /** Reads a logout token (OpenID Connect Back-Channel Logout, 2.4). @throws when it is not valid here and now */
  readLogout(token: string): Promise<ProviderLogoutClaims>;
}

/** Timeout of requests to a provider. */
const TIMEOUT_SECONDS = 10;

/** Time for which the discovery metadata is cached. */
const METADATA_MS = 3_600_000;

/** Maximum age of a logout token. */
const MAX_LOGOUT_AGE_SECONDS = 120;

const SIGNATURES = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

interface Discovered {
  readonly lib: typeof OpenId;
  readonly configuration: OpenId.Configuration;
  /** The provider's keys, which are fetched again when a token names an unknown one, at most every 30 seconds. */
  readonly keys: JWTVerifyGetKey;
  readonly jwtVerify: typeof jwtVerify;
}

/**
 * Creates the client of a provider; no request is sent before the first sign-in. Its address comes from the operator's
 * settings, so it may be in a private network.
 *
 * @param now returns milliseconds since 1970 UTC
 */
export function createProviderClient(registration: ProviderRegistration, now: () => number): ProviderClient {
  const { clientId, scopes, issuer } = registration;
  let found: { readonly at: number; readonly discovered: Promise<Discovered> } | undefined;
  const discovered = () => {
    if (!found || now() - found.at > METADATA_MS) {
      const next = { at: now(), discovered: discover(registration, now) };
      found = next;
      // A failed discovery is retried with the next sign-in.
      next.discovered.catch(() => {
        if (found === next) found = undefined;
      });
    }
    return found.discovered;
  };
  return {
    begin: (redirectUri) =>
      asRefusal(async () => {
        const { lib, configuration } = await discovered();
        const [state, nonce, verifier] = [lib.randomState(), lib.randomNonce(), lib.randomPKCECodeVerifier()];
        const url = lib.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: scopes.join(" "),
          state,
          nonce,
          code_challenge: await lib.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
        });
        return { url: url.href, flow: { state, nonce, verifier } };
      }),
    finish: (answer, { state, nonce, verifier }) =>
      asRefusal(async () => {
        const { lib, configuration } = await discovered();
        const tokens = await lib.authorizationCodeGrant(configuration, answer, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (!claims || claims.iat > now() / 1000 + CLOCK_TOLERANCE_SECONDS) {
          throw new Error("the ID token was issued in the future");
        }
        // The library compares it only where the token names several audiences.
        if (claims.azp !== undefined && claims.azp !== clientId) {
          throw new Error("the ID token was issued to another client (azp)");
        }
        const { userinfo_endpoint: userinfo } = configuration.serverMetadata();
        const more = userinfo
          ? await lib.fetchUserInfo(configuration, tokens.access_token, claims.sub)
          : undefined;
        return readClaims(mergeClaims(claims, more));
      }),
    async readLogout(token) {
      const { keys, jwtVerify } = await discovered();
      const { payload } = await jwtVerify(token, keys, {
        algorithms: SIGNATURES,
        issuer,
        audience: clientId,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        maxTokenAge: MAX_LOGOUT_AGE_SECONDS,
        currentDate: new Date(now()),
      });
      return requireLogout(payload);
    },
  };
}

async function discover(registration: ProviderRegistration, now: () => number): Promise<Discovered> {
  // Loaded with the first sign-in: most servers have no provider.
  const [lib, jose] = await Promise.all([import("openid-client"), import("jose")]);
  const { issuer, clientId, clientSecret, clientAuthentication } = registration;
  const authentications = { basic: lib.ClientSecretBasic, post: lib.ClientSecretPost };
  const configuration = await lib.discovery(
    new URL(issuer),
    clientId,
    {
      [lib.clockTolerance]: CLOCK_TOLERANCE_SECONDS,
      [lib.clockSkew]: Math.round((now() - Date.now()) / 1000),
    },
    clientSecret === undefined ? lib.None() : authentications[clientAuthentication](clientSecret),
    {
      timeout: TIMEOUT_SECONDS,
      [lib.customFetch]: fetchBounded,
      execute: [
        lib.enableNonRepudiationChecks,
        ...(issuer.startsWith("http:") ? [lib.allowInsecureRequests] : []),
      ],
    },
  );
  const { issuer: found, jwks_uri: keysUrl = "" } = configuration.serverMetadata();
  // The library accepts some similar issuers. With a different one, identities would not match the issuer of logouts.
  if (found !== issuer) throw new Error(`the discovery of ${issuer} names the issuer ${found}: set that one`);
  const keys = jose.createRemoteJWKSet(new URL(keysUrl), {
    timeoutDuration: TIMEOUT_SECONDS * 1000,
    [jose.customFetch]: fetchBounded,
  });
  return { lib, configuration, keys, jwtVerify: jose.jwtVerify };
}

async function asRefusal<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof SignInRefused) throw cause;
    const isDenied = (cause as { error?: unknown }).error === "access_denied";
    throw new SignInRefused(isDenied ? "provider_refused" : "provider_failed", { cause });
  }
}

/** Returns the log fields for a failure at a provider, which never contain a token, a code or a claim. */
export function problemIn(error: unknown): Readonly<Record<string, string>> {
  if (!(error instanceof Error)) return {};
  const { code, error: answered, cause } = error as { code?: unknown; error?: unknown; cause?: unknown };
  const beneath = cause instanceof Error ? (cause as { code?: unknown }).code : undefined;
  return {
    reason: error.message,
    ...(typeof code === "string" && { code }),
    // For example ECONNREFUSED, or the problem of a certificate.
    ...(typeof beneath === "string" && beneath !== code && { cause: beneath }),
    ...(typeof answered === "string" && /^[a-z_]{1,64}$/.test(answered) && { answered }),
  };
}
