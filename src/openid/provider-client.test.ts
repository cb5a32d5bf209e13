import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "@jest/globals";
import { createProviderClient, problemIn } from "./provider-client.ts";

let provider: Server;
afterEach(() => void provider.close());

/** Starts a provider whose discovery names an issuer; returns its address. */
async function startDiscovery(issuerOf: (address: string) => string): Promise<string> {
  let address = "";
  provider = createServer((_, res) => {
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify({ issuer: issuerOf(address), jwks_uri: `${address}/keys` }));
  });
  await once(provider.listen(0, "127.0.0.1"), "listening");
  address = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  return address;
}

/** Returns what the log says of a sign-in that does not begin. */
async function problemAt(issuer: string) {
  const [clientSecret, scopes] = [undefined, ["openid"]];
  const registration = {
    issuer,
    clientId: "us",
    clientSecret,
    clientAuthentication: "basic",
    scopes,
  } as const;
  const refused = await createProviderClient(registration, Date.now)
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
  await once(provider.close(), "close");
  expect(await problemAt(issuer)).toEqual({ reason: "fetch failed", cause: "ECONNREFUSED" });
});
