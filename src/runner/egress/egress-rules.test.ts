import { describe, expect, test } from "@jest/globals";
import { type EgressRule, egressDecider, parseHost, resolverForWork, targetOfUrl } from "./egress-rules.ts";

const RULES: readonly EgressRule[] = [
  { name: "sources", host: "chartroom.example.org", ports: [8080, 22] },
  { name: "service", host: "chartroom.example.org", ports: [8080], isService: true },
  { name: "hosts[0]", host: "api.example.org", ports: [443] },
  { name: "hosts[1]", host: "*.packages.example.org", ports: [80, 443] },
  { name: "hosts[2]", host: "8.8.8.8", ports: [443] },
];

/** Decides about a host; every name resolves to `addresses`. Returns the decision and the names that were looked up. */
async function decide(authority: string, addresses: readonly string[], named: string[] = []) {
  const asked: string[] = [];
  const privateNetworks = named.map((address) => ({ address, prefix: 32, family: "ipv4" as const }));
  const decider = egressDecider(RULES, privateNetworks, async (name) => {
    asked.push(name);
    return addresses;
  });
  const { host = "", port = 0 } = parseHost(authority) ?? {};
  return { ...(await decider({ host, port })), asked };
}

describe("the rules of egress", () => {
  test.each([
    ["api.example.org:443", "hosts[0]"],
    ["API.Example.ORG.:443", "hosts[0]"],
    ["a.packages.example.org:80", "hosts[1]"],
    ["a.b.packages.example.org:443", "hosts[1]"],
    ["8.8.8.8:443", "hosts[2]"],
    ["134744072:443", "hosts[2]"],
  ])("allow %s by %s", async (authority, rule) => {
    expect(await decide(authority, ["8.8.8.8"])).toMatchObject({ rule, addresses: ["8.8.8.8"] });
  });

  test.each([
    "api.example.org:80",
    "api.example.org:444",
    "packages.example.org:443",
    "evilpackages.example.org:443",
    "api.example.org.evil.example:443",
    "xapi.example.org:443",
    "8.8.4.4:443",
    "chartroom.example.org:443",
  ])("refuse %s without looking it up", async (authority) => {
    expect(await decide(authority, ["8.8.8.8"])).toEqual({ rule: "", refusal: "not_allowed", asked: [] });
  });

  test.each([
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "168.63.129.16",
    "::1",
    "fe80::1",
    "fd00:ec2::254",
    "::ffff:127.0.0.1",
    "0.0.0.0",
    "fe80::1%lo",
    "64:ff9b::10.1.2.3",
  ])("refuse a name at %s, also where another of its addresses is public", async (address) => {
    for (const addresses of [[address], ["8.8.8.8", address]])
      expect(await decide("api.example.org:443", addresses)).toMatchObject({
        rule: "hosts[0]",
        refusal: "address_not_public",
      });
  });

  test("allow an address that is not public where the operator names it, and no other", async () => {
    expect(await decide("api.example.org:443", ["10.1.2.3"], ["10.1.2.3"])).toMatchObject({
      addresses: ["10.1.2.3"],
    });
    expect(await decide("api.example.org:443", ["10.1.2.4"], ["10.1.2.3"])).toHaveProperty("refusal");
  });

  test("allow the service wherever it is, at its own port alone", async () => {
    expect(await decide("chartroom.example.org:8080", ["10.1.2.3"])).toMatchObject({ rule: "service" });
    expect(await decide("10.1.2.3:8080", [])).toMatchObject({ refusal: "not_allowed" });
  });

  test("refuse a name without an address", async () => {
    expect(await decide("api.example.org:443", [])).toMatchObject({ refusal: "no_address" });
  });
});

test("work looks up two names at a time, each once for all who ask, and none once it is over", async () => {
  const over = new AbortController();
  const asked: { readonly name: string; answer(addresses: string[]): void }[] = [];
  const resolve = resolverForWork((name) => {
    const { promise, resolve: answer } = Promise.withResolvers<string[]>();
    asked.push({ name, answer });
    return promise;
  }, over.signal);
  const names = Array.from({ length: 101 }, (_, index) => `n${index}.example`);
  const found = ["n0.example", ...names].map((name) => resolve(name).catch(() => "over"));
  expect(asked.map(({ name }) => name)).toEqual(["n0.example", "n1.example"]);
  expect(await found.at(-1)).toEqual([]);
  asked[0]?.answer(["8.8.8.8"]);
  expect(await Promise.all(found.slice(0, 2))).toEqual([["8.8.8.8"], ["8.8.8.8"]]);
  expect(asked.map(({ name }) => name)).toEqual(["n0.example", "n1.example", "n2.example"]);
  over.abort();
  expect(await found.at(-2)).toBe("over");
  for (const { answer } of asked) answer([]);
  expect(await found[2]).toEqual([]);
  expect(asked).toHaveLength(3);
});

describe("a host", () => {
  test.each([
    ["0x7f.1:80", { host: "127.0.0.1", port: 80 }],
    ["2130706433:80", { host: "127.0.0.1", port: 80 }],
    ["[0:0:0::1]:65535", { host: "::1", port: 65_535 }],
    ["[::ffff:7f00:1]:1", { host: "::ffff:7f00:1", port: 1 }],
    ["b\u00fccher.example", { host: "xn--bcher-kva.example", port: undefined }],
  ])("%s has one spelling", (text, parsed) => {
    expect(parseHost(text)).toEqual(parsed);
  });

  test.each([
    "",
    ":80",
    "a:0",
    "a:65536",
    "a:b",
    "a b:80",
    "u@a:80",
    "a/b:80",
    "a%2eb:80",
    "[::1",
    "-a:80",
    "a:80:80",
    `${"a.".repeat(127)}a:80`,
  ])("%j is none", (text) => {
    expect(parseHost(text)).toBeUndefined();
  });

  test("is that of a URL of http or https", () => {
    expect(targetOfUrl("https://A.example/x")).toEqual({ host: "a.example", port: 443 });
    expect(targetOfUrl("http://[::1]:8080")).toEqual({ host: "::1", port: 8_080 });
    expect(targetOfUrl("ftp://a.example/")).toBeUndefined();
    expect(targetOfUrl("")).toBeUndefined();
  });
});
