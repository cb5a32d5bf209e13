import { afterAll, beforeEach, describe, expect, test } from "@jest/globals";
import { startTokenIssuer, type TokenIssuer } from "../../test/harness/token-issuer.ts";
import { KEYS_MS, MIN_REFETCH_MS } from "./issuer-keys.ts";
import { createMachineTokens, type MachineTokens } from "./machine-tokens.ts";

const started: TokenIssuer[] = [];
afterAll(() => Promise.all(started.map((each) => each.close())));

let now: number;
let issuer: TokenIssuer;
let tokens: MachineTokens;
beforeEach(async () => {
  now = Date.parse("2030-01-01T00:00:00Z");
  issuer = await startTokenIssuer(() => now);
  started.push(issuer);
  tokens = createMachineTokens([settings(issuer.issuer)], () => now);
});

const settings = (of: string, allowPrivateAddresses = true) => ({
  ...{ issuer: of, audiences: ["chartroom"], maxSeconds: 3_600, mayOutlive: false, allowPrivateAddresses },
});
const read = async (token: string) => {
  try {
    return (await tokens.read(token)).subject;
  } catch (error) {
    return `${(error as { problem: string }).problem}: ${(error as Error).message}`;
  }
};
const keysAsked = () => issuer.asked.filter((path) => path === "/keys").length;

const NO_KEY = "invalid_grant: the token names a key that its issuer does not have";
const FAILED = "temporarily_unavailable: the keys of the token's issuer cannot be had now";

describe("the keys of an issuer", () => {
  test("are asked for with the first token, and not again for 15 minutes", async () => {
    expect(issuer.asked).toEqual([]);
    for (let each = 0; each < 3; each++) expect(await read(await issuer.sign())).toMatch(/^repo:/);
    expect(issuer.asked).toEqual(["/.well-known/openid-configuration", "/keys"]);
    now += KEYS_MS - 1;
    await read(await issuer.sign());
    expect(keysAsked()).toBe(1);
    now += 1;
    await read(await issuer.sign());
    expect(keysAsked()).toBe(2);
  });

  test("are asked for again for a key that is not there, at most every 30 seconds", async () => {
    await read(await issuer.sign());
    await issuer.rotate("second");
    now += MIN_REFETCH_MS - 1;
    expect(await read(await issuer.sign())).toBe(NO_KEY);
    expect(keysAsked()).toBe(1);
    now += 1;
    expect(await read(await issuer.sign())).toMatch(/^repo:/);
    expect(keysAsked()).toBe(2);
    for (let each = 0; each < 5; each++)
      expect(await read(await issuer.sign({}, { kid: "made up" }))).toBe(NO_KEY);
    expect(keysAsked()).toBe(2);
    now += MIN_REFETCH_MS;
    const many = await Promise.all(
      [1, 2, 3, 4].map(async () => read(await issuer.sign({}, { kid: "made up" }))),
    );
    expect(many).toEqual([NO_KEY, NO_KEY, NO_KEY, NO_KEY]);
    expect(keysAsked()).toBe(3);
  });

  test("stay in use while a key that is not there is asked for in vain", async () => {
    await read(await issuer.sign());
    now += MIN_REFETCH_MS;
    issuer.answers.set("/keys", { status: 500, body: {} });
    const unknown = read(await issuer.sign({}, { kid: "made up" }));
    expect(await read(await issuer.sign())).toMatch(/^repo:/);
    expect(await unknown).toBe(FAILED);
    expect(await read(await issuer.sign())).toMatch(/^repo:/);
    expect(await read(await issuer.sign({}, { kid: "made up" }))).toBe(FAILED);
    expect(keysAsked()).toBe(2);
    now += KEYS_MS - MIN_REFETCH_MS;
    expect(await read(await issuer.sign())).toBe(FAILED);
  });

  test("that it has taken back hold no longer than 15 minutes", async () => {
    const old = await issuer.sign({ exp: now / 1000 + 3_600 });
    expect(await read(old)).toMatch(/^repo:/);
    await issuer.rotate("second");
    now += KEYS_MS;
    expect(await read(old)).toBe(NO_KEY);
  });

  test("are asked for again after a failure, at most every 30 seconds", async () => {
    issuer.answers.set("/keys", { status: 500, body: {} });
    expect(await read(await issuer.sign())).toBe(FAILED);
    issuer.answers.clear();
    now += MIN_REFETCH_MS - 1;
    expect(await read(await issuer.sign())).toBe(FAILED);
    expect(keysAsked()).toBe(1);
    now += 1;
    expect(await read(await issuer.sign())).toMatch(/^repo:/);
  });

  test.each<[string, string, { status: number; headers?: Record<string, string>; body: unknown }]>([
    ["a redirect", "/keys", { status: 302, headers: { location: "/other" }, body: {} }],
    ["no JSON", "/keys", { status: 200, body: "<html>" }],
    ["no keys", "/keys", { status: 200, body: { nothing: [] } }],
    ["more than 512 KiB", "/keys", { status: 200, body: { keys: [], more: "x".repeat(513 * 1_024) } }],
    [
      "another issuer",
      "/.well-known/openid-configuration",
      { status: 200, body: { issuer: "https://evil.example.org" } },
    ],
    [
      "a place that is no URL",
      "/.well-known/openid-configuration",
      { status: 200, body: { jwks_uri: "keys" } },
    ],
  ])("are none that come as %s", async (_, path, answer) => {
    const body =
      typeof answer.body === "object" && path.startsWith("/.well-known")
        ? { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/keys`, ...answer.body }
        : answer.body;
    issuer.answers.set(path, { ...answer, body });
    expect(await read(await issuer.sign())).toBe(FAILED);
    expect(issuer.asked).not.toContain("/other");
  });

  test("are not asked for at an address that is not public, unless the settings allow it", async () => {
    tokens = createMachineTokens([settings(issuer.issuer, false)], () => now);
    expect(await read(await issuer.sign())).toBe(FAILED);
    expect(issuer.asked).toEqual([]);
    // Nor by a name that leads there.
    const named = issuer.issuer.replace("127.0.0.1", "localhost");
    tokens = createMachineTokens([settings(named, false)], () => now);
    expect(await read(await issuer.sign({ iss: named }))).toBe(FAILED);
    expect(issuer.asked).toEqual([]);
  });
});

describe("the times of a token", () => {
  const at = (change: Record<string, number>) =>
    issuer.sign(Object.fromEntries(Object.entries(change).map(([name, by]) => [name, now / 1000 + by])));

  test.each<[Record<string, number>, string]>([
    [{ exp: 1 }, "repo:"],
    [{ exp: -29 }, "repo:"],
    [{ exp: -30 }, "invalid_grant: the token has ended"],
    [{ exp: -600 }, "invalid_grant: the token has ended"],
    [{ nbf: 30 }, "repo:"],
    [{ nbf: 31 }, "invalid_grant: the claim nbf of the token"],
    [{ iat: 30 }, "repo:"],
    [{ iat: 31 }, "invalid_grant: the token was issued in the future"],
    [{ exp: 24 * 3_600 }, "repo:"],
    [{ exp: 24 * 3_600 + 1 }, "invalid_grant: the token is valid for more than a day"],
  ])("%j seconds from now: %s", async (change, outcome) => {
    expect(await read(await at(change))).toContain(outcome);
  });

  test("that have parts of a second end at a whole millisecond", async () => {
    const token = await issuer.sign({ exp: now / 1000 + 600.12345 });
    expect((await tokens.read(token)).expiresAt).toBe(now + 600_123);
  });
});
