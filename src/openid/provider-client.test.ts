import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "@jest/globals";
import { startTokenIssuer } from "../../test/harness/token-issuer.ts";
import { MAX_RESPONSE_BYTES } from "../scm/bounded-fetch.ts";
import { createProviderClient, problemIn } from "./provider-client.ts";

let provider: Server | undefined;
afterEach(() => void provider?.close());

/** Starts a provider whose discovery names an issuer; returns its address. */
async function startDiscovery(issuerOf: (address: string) => string): Promise<string> {
  let address = "";
  const server = createServer((_, res) => {
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify({ issuer: issuerOf(address), jwks_uri: `${address}/keys` }));
  });
  provider = server;
  await once(server.listen(0, "127.0.0.1"), "listening");
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return address;
}

function clientOf(issuer: string, now: () => number) {
  const [clientSecret, scopes] = [undefined, ["openid"]];
  const clientAuthentication = "basic";
  return createProviderClient({ issuer, clientId: "us", clientSecret, clientAuthentication, scopes }, now);
}

/** Returns what the log says of a sign-in that does not begin. */
async function problemAt(issuer: string) {
  const refused = await clientOf(issuer, Date.now)
    .begin("http://127.0.0.1/")
    .catch((error) => error);
  expect(refused.problem).toBe("provider_failed");
  return problemIn(refused.cause);
}

test("an issuer that discovery spells otherwise is refused, with the one to set", async () => {
  const issuer = await startDiscovery((address) => `${address}/`);
  const reason = `the discovery of ${issuer} names the issuer ${issuer}/: set that one`;
  expect(await problemAt(issuer)).toEqual({ reason });
});

test("a provider that is away is logged with the reason of the connection", async () => {
  const issuer = await startDiscovery((address) => address);
  if (provider) await once(provider.close(), "close");
  expect(await problemAt(issuer)).toEqual({ reason: "fetch failed", cause: "ECONNREFUSED" });
});

test("an answer of a provider is read to its limit alone", async () => {
  const issuer = await startTokenIssuer();
  const paths = ["/.well-known/openid-configuration", "/keys"] as const;
  const bodies = {
    [paths[0]]: { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/keys` },
    [paths[1]]: { keys: [issuer.publicKey()] },
  };
  // An answer of a given size, made so by a member that nobody reads.
  const answer = (path: (typeof paths)[number], size: number) => {
    const bare = JSON.stringify({ ...bodies[path], more: "" });
    const body = JSON.stringify({ ...bodies[path], more: "x".repeat(size - bare.length) });
    issuer.answers.set(path, { status: 200, body });
  };
  const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
  const logoutToken = await issuer.sign({ aud: "us", sub: "7", events });
  const outcome = () =>
    clientOf(issuer.issuer, Date.now)
      .readLogout(logoutToken)
      .then(({ subject }) => subject, problemIn);
  try {
    for (const path of paths) {
      answer(path, MAX_RESPONSE_BYTES);
      expect(await outcome()).toBe("7");
      answer(path, MAX_RESPONSE_BYTES + 1);
      expect(await outcome()).toEqual({ reason: `the response has more than ${MAX_RESPONSE_BYTES} bytes` });
      issuer.answers.delete(path);
    }
  } finally {
    await issuer.close();
  }
});

test("a logout token is taken for two minutes, and for the 30 seconds by which clocks may differ", async () => {
  const now = Date.parse("2030-01-01T00:00:00Z");
  const issuer = await startTokenIssuer(() => now);
  const client = clientOf(issuer.issuer, () => now);
  const at = now / 1000;
  const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
  const isTaken = async (claims: object) => {
    const token = await issuer.sign({ aud: "us", sub: "7", iat: at, exp: at + 60, events, ...claims });
    const read = async () => (await client.readLogout(token).catch(() => undefined))?.at;
    const first = await read();
    // One that comes again says the same, and so of no session that began since.
    expect(await read()).toBe(first);
    return first !== undefined;
  };
  try {
    const ages = [0, 149, 150, 151, 3_600, -30, -31];
    const taken = await Promise.all(ages.map((age) => isTaken({ iat: at - age })));
    expect(taken).toEqual([true, true, true, false, false, true, false]);
    const ends = await Promise.all([1, 0, -29, -30].map((left) => isTaken({ exp: at + left })));
    expect(ends).toEqual([true, true, true, false]);
    expect([await isTaken({ aud: "them" }), await isTaken({ iss: "https://other.example.org" })]).toEqual([
      ...[false, false],
    ]);
    expect(await isTaken({ iat: undefined })).toBe(false);
  } finally {
    await issuer.close();
  }
});

test("an ID token for another client is refused where it names this one as its only audience, too", async () => {
  const issuer = await startTokenIssuer();
  const path = "/.well-known/openid-configuration";
  const endpoints = {
    authorization_endpoint: `${issuer.issuer}/authorize`,
    token_endpoint: `${issuer.issuer}/token`,
    jwks_uri: `${issuer.issuer}/keys`,
  };
  issuer.answers.set(path, { status: 200, body: { issuer: issuer.issuer, ...endpoints } });
  const client = clientOf(issuer.issuer, Date.now);
  const finish = async (claims: object) => {
    const { flow } = await client.begin("http://127.0.0.1/");
    const id_token = await issuer.sign({ aud: "us", sub: "7", nonce: flow.nonce, ...claims });
    const body = { access_token: "a", token_type: "bearer", id_token };
    issuer.answers.set("/token", { status: 200, body });
    const answer = new URL(`http://127.0.0.1/?code=c&state=${flow.state}`);
    return client.finish(answer, flow).then(
      ({ subject }) => subject,
      ({ cause }) => problemIn(cause).reason,
    );
  };
  try {
    expect([await finish({}), await finish({ azp: "us" })]).toEqual(["7", "7"]);
    expect(await finish({ azp: "them" })).toBe("the ID token was issued to another client (azp)");
  } finally {
    await issuer.close();
  }
});
