import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

/** An issuer of tokens of machines: a real server with a discovery, and keys that it signs with. */
export interface TokenIssuer {
  readonly issuer: string;
  /** What was asked for, by its path. */
  readonly asked: string[];
  /** Answers of paths other than the two of its own, and instead of these. */
  readonly answers: Map<
    string,
    { readonly status: number; readonly headers?: Record<string, string>; readonly body: unknown }
  >;
  /** Makes a key that it signs with from now on; the one before is gone from what it tells. */
  rotate(kid: string): Promise<void>;
  /** The public key that it tells now. */
  publicKey(): JWK;
  /** Signs a token. @param claims take the place of the usual ones; undefined leaves one out */
  sign(claims?: object, header?: Readonly<Record<string, unknown>>): Promise<string>;
  close(): Promise<void>;
}

/** Starts an issuer on this machine. @param now milliseconds since 1970 UTC */
export async function startTokenIssuer(now: () => number = Date.now): Promise<TokenIssuer> {
  let keys: { readonly privateKey: CryptoKey; readonly jwk: JWK };
  const asked: string[] = [];
  const answers: TokenIssuer["answers"] = new Map();
  const server = createServer({ keepAlive: false }, (req, res) => {
    const path = req.url ?? "";
    asked.push(path);
    const usual: Record<string, unknown> = {
      "/.well-known/openid-configuration": { issuer, jwks_uri: `${issuer}/keys` },
      "/keys": { keys: [keys.jwk] },
    };
    const { status, headers, body } = answers.get(path) ?? {
      status: path in usual ? 200 : 404,
      body: usual[path],
    };
    res.writeHead(status, { "content-type": "application/json", connection: "close", ...headers });
    res.end(typeof body === "string" ? body : JSON.stringify(body ?? {}));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let tokens = 0;
  const made: TokenIssuer = {
    issuer,
    asked,
    answers,
    async rotate(kid) {
      const { privateKey, publicKey } = await generateKeyPair("RS256");
      keys = { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: "RS256", use: "sig" } };
    },
    publicKey: () => keys.jwk,
    async sign(claims = {}, header = {}) {
      tokens += 1;
      const at = Math.floor(now() / 1000);
      const usual = {
        ...{
          iss: issuer,
          aud: "chartroom",
          sub: "repo:acme/app:ref:refs/heads/main",
          jti: `${issuer} ${tokens}`,
        },
        ...{ iat: at, nbf: at, exp: at + 600, repository: "acme/app", ref: "refs/heads/main" },
      };
      const token = new SignJWT({ ...usual, ...claims } as JWTPayload);
      return token
        .setProtectedHeader({ alg: "RS256", kid: keys.jwk.kid ?? "", ...header })
        .sign(keys.privateKey);
    },
    async close() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
  await made.rotate("first");
  return made;
}
