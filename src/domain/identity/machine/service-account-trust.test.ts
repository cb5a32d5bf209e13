import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { CreateServiceAccountTrustRequestSchema } from "#gen/service/v1/service_account_service_pb.js";
import { DomainError } from "../../error.ts";
import { machineTokenEnd } from "./machine-token.ts";
import {
  fitsConditions,
  newServiceAccountTrust,
  requireRoomForTrust,
  type TrustableIssuer,
} from "./service-account-trust.ts";

const ISSUERS: readonly TrustableIssuer[] = [
  { issuer: "https://ci.example.org", audiences: ["chartroom", "other"] },
  { issuer: "https://ci.example.com", audiences: ["elsewhere"] },
];

function trust(change: object = {}, issuers = ISSUERS) {
  const conditions = [{ claim: "sub", value: "repo:acme/app:ref:refs/heads/main" }];
  const req = create(CreateServiceAccountTrustRequestSchema, {
    ...{ serviceAccountId: "a", issuer: "https://ci.example.org", audience: "chartroom", conditions },
    ...change,
  });
  const creator = create(SubjectSchema, { id: "u", principal: Principal.USER });
  return newServiceAccountTrust(req, issuers, { id: "t", creator, now: 0 });
}

function refusalOf(change: object, issuers = ISSUERS): string {
  try {
    trust(change, issuers);
  } catch (error) {
    if (error instanceof DomainError) return error.message;
    throw error;
  }
  return "";
}

describe("a trust", () => {
  test("names an issuer of the settings and an audience of that, where they name any", () => {
    expect(refusalOf({ issuer: "https://ci.example.org/" })).toMatch(
      /no such issuer; there are https:\/\/ci\.example\.org, /,
    );
    expect(refusalOf({ audience: "elsewhere" })).toMatch(/no such audience .* there are chartroom, other$/);
    expect(refusalOf({ audience: "other" })).toBe("");
    expect(refusalOf({ issuer: "https://nobody.example.org", audience: "x" }, [])).toBe("");
  });

  test.each(["repo:acme/*", "repo:*", "project_path:acme/app:*", "a/b/*"])("takes the prefix %s", (value) => {
    expect(refusalOf({ conditions: [{ claim: "sub", value }] })).toBe("");
  });

  test.each([
    "*",
    "/*",
    "repo:acme*",
    "repo:*/app",
    "repo:acme/*:ref",
    "**",
    "repo:**",
    "a*/*",
    "repo.*",
    "repo-*",
  ])("takes no %s, which looks like a pattern", (value) => {
    expect(refusalOf({ conditions: [{ claim: "sub", value }] })).toMatch(/^a \* is allowed only at the end/);
  });

  test("is one of 25 at most", () => {
    expect(() => requireRoomForTrust(24)).not.toThrow();
    expect(() => requireRoomForTrust(25)).toThrow(/at most 25 trusts/);
  });
});

describe("claims", () => {
  const fitsOne = (value: string, found: unknown) =>
    fitsConditions(trust({ conditions: [{ claim: "sub", value }] }), { sub: found });

  test.each<[string, unknown, boolean]>([
    ["main", "main", true],
    ["main", "main2", false],
    ["main", "Main", false],
    ["main", " main", false],
    ["m.in", "main", false],
    ["repo:acme/*", "repo:acme/app", true],
    ["repo:acme/*", "repo:acme/app:ref:x", true],
    ["repo:acme/*", "repo:acme/", false],
    ["repo:acme/*", "repo:acme", false],
    ["repo:acme/*", "repo:acme-evil/app", false],
    ["repo:acme/*", "Repo:acme/app", false],
    ["repo:acme/*", "x repo:acme/app", false],
    ["repo:a.me/*", "repo:acme/app", false],
    ["7", 7, true],
    ["9007199254740991", 9_007_199_254_740_991, true],
    ["9007199254740992", 9_007_199_254_740_992, false],
    ["true", true, true],
    ["null", null, false],
    ["main", ["main"], false],
    ["main", { main: 1 }, false],
    ["[object Object]", {}, false],
  ])("that must be %j: %j fits %p", (value, found, fits) => {
    expect(fitsOne(value, found)).toBe(fits);
  });

  test("fit only when all do, and none that is missing", () => {
    const both = trust({
      conditions: [
        { claim: "repository", value: "acme/app" },
        { claim: "ref", value: "refs/heads/*" },
      ],
    });
    expect(fitsConditions(both, { repository: "acme/app", ref: "refs/heads/main" })).toBe(true);
    expect(fitsConditions(both, { repository: "acme/app", ref: "refs/tags/v1" })).toBe(false);
    expect(fitsConditions(both, { repository: "acme/app" })).toBe(false);
    expect(fitsConditions(both, {})).toBe(false);
    expect(fitsConditions({ conditions: [] }, {})).toBe(false);
    const inherited = trust({ conditions: [{ claim: "constructor", value: "x" }] });
    expect(fitsConditions(inherited, {})).toBe(false);
  });
});

describe("a token that a trust gives", () => {
  const HOUR_MS = 3_600_000;
  const claims = { expiresAt: 10 * HOUR_MS, maxSeconds: 3_600, mayOutlive: false };
  const FAR = 100 * HOUR_MS;

  test("ends after an hour at most, with the issuer's token, and with the service account", () => {
    expect(machineTokenEnd(claims, FAR, 0)).toBe(HOUR_MS);
    expect(machineTokenEnd({ ...claims, maxSeconds: 7_200 }, FAR, 0)).toBe(HOUR_MS);
    expect(machineTokenEnd({ ...claims, maxSeconds: 60 }, FAR, 0)).toBe(60_000);
    expect(machineTokenEnd({ ...claims, expiresAt: 300_000 }, FAR, 0)).toBe(330_000);
    expect(machineTokenEnd({ ...claims, expiresAt: 300_000, mayOutlive: true }, FAR, 0)).toBe(HOUR_MS);
    expect(machineTokenEnd(claims, 1_000, 0)).toBe(1_000);
  });
});
