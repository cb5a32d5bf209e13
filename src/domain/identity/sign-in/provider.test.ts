import { describe, expect, test } from "@jest/globals";
import { joinsByDomain } from "./joining.ts";
import { groupNamesOf, mergeClaims, readClaims, roleOf, type SignInRules } from "./provider.ts";
import { requireLogout, startsBefore } from "./provider-session.ts";

const WHO = { iss: "https://id.example.org", sub: "7" };
const EVENT = "http://schemas.openid.net/event/backchannel-logout";

const rules = (more: Partial<SignInRules>): SignInRules => ({
  id: "corp",
  organizationId: "",
  allowedDomains: [],
  createsAccounts: true,
  linksByEmail: false,
  roles: [],
  refusesOthers: false,
  groupsClaim: "",
  ...more,
});

describe("claims", () => {
  test.each([
    [true, true],
    ["true", true],
    [false, false],
    ["yes", false],
    [1, false],
    [undefined, false],
  ])("that call an address verified with %p: %p", (email_verified, verified) => {
    expect(readClaims({ ...WHO, email: "a@example.org", email_verified }).emailVerified).toBe(verified);
  });

  test.each([
    "",
    "a",
    "@example.org",
    "a@",
    "a b@example.org",
    "a@b@example.org",
    "a@example.org\n",
    "\u202ea@example.org",
    7,
  ])("name no address with %p, so none is verified", (email) => {
    expect(readClaims({ ...WHO, email, email_verified: true })).toMatchObject({
      email: "",
      emailVerified: false,
    });
  });

  test.each<[string, object, object | undefined, string, boolean]>([
    ["the ID token alone", { email: "a@x.org", email_verified: true }, undefined, "a@x.org", true],
    ["the userinfo endpoint alone", {}, { email: "a@x.org", email_verified: true }, "a@x.org", true],
    [
      "both, verified by one",
      { email: "a@x.org" },
      { email: "a@x.org", email_verified: true },
      "a@x.org",
      true,
    ],
    [
      "both, not the same",
      { email: "a@x.org" },
      { email: "b@x.org", email_verified: true },
      "a@x.org",
      false,
    ],
    [
      "one, the other calling none verified",
      { email_verified: true },
      { email: "b@x.org" },
      "b@x.org",
      false,
    ],
  ])("have the address of %s", (_, token, userinfo, email, emailVerified) => {
    const claims = mergeClaims({ ...WHO, ...token }, userinfo && { ...WHO, iss: "else", ...userinfo });
    expect(readClaims(claims)).toMatchObject({ issuer: WHO.iss, email, emailVerified });
  });

  test.each([
    ["Ann\u202e Lee", "Ann Lee"],
    ["Ann\u{e0041}", "Ann"],
    ["A\nB\u0000", "A B"],
    ["\u202e", "ann"],
    [" \n", "ann"],
  ])("name somebody as others read it: %j", (name, shown) => {
    expect(readClaims({ ...WHO, name, preferred_username: "ann" }).name).toBe(shown);
  });

  test("name somebody by an id of at most 255 characters", () => {
    expect(readClaims({ ...WHO, sub: "x".repeat(255) }).subject).toHaveLength(255);
    for (const claims of [
      { ...WHO, sub: "x".repeat(256) },
      { ...WHO, sub: "" },
      { ...WHO, sub: "é" },
      { sub: "7" },
      {},
    ]) {
      // The cause is what the operator's log says.
      expect(() => readClaims(claims)).toThrow(
        expect.objectContaining({ problem: "provider_failed", cause: expect.any(Error) }),
      );
    }
  });
});

test("the first rule that fits decides the role, by the whole value", () => {
  const roles = [
    { claim: "groups", value: "admins", role: 1 },
    { claim: "team", value: "7", role: 2 },
  ];
  const role = (claims: object, more: Partial<SignInRules> = {}) =>
    roleOf(rules({ roles, ...more }), readClaims({ ...WHO, ...claims }));
  expect(role({ groups: ["a", "admins"], team: "7" })).toBe(1);
  expect(role({ groups: "admins" })).toBe(1);
  expect(role({ groups: ["Admins", "admins2", "*"] })).toBe(2);
  expect(role({ team: 7 }, { refusesOthers: false })).toBe(2);
  expect(() => role({ team: 7 }, { refusesOthers: true })).toThrow("no_role");
  expect(() => role({ constructor: undefined }, { refusesOthers: true })).toThrow("no_role");
  expect(role({ groups: ["admins"] }, { roles: [] })).toBeUndefined();
});

test("an account joins by a verified address of a domain, whatever its letters", () => {
  const joins = (email: string, email_verified = 1) =>
    joinsByDomain(["example.org"], [{ email, email_verified }]);
  expect([joins("a@example.org"), joins("a@EXAMPLE.org")]).toEqual([true, true]);
  expect([joins("a@example.org", 0), joins(""), joins("a@sub.example.org")]).toEqual([false, false, false]);
  expect(joinsByDomain(["example.org"], [])).toBe(false);
});

describe("a logout token", () => {
  const good = { ...WHO, iat: 1_000, events: { [EVENT]: {} } };

  test("names a person, a session or both", () => {
    expect(requireLogout(good)).toEqual({ subject: "7", sessionId: undefined, at: 1_000_000 });
    expect(requireLogout({ ...good, sub: undefined, sid: "s" })).toMatchObject({ sessionId: "s" });
  });

  test.each([
    ["an ID token", { events: undefined }],
    ["another event", { events: { "https://example.org/event": {} } }],
    ["one with a nonce", { nonce: "n" }],
    ["one of nobody", { sub: undefined }],
    ["one of no time", { iat: undefined }],
  ])("is not %s", (_, change) => {
    expect(() => requireLogout({ ...good, ...change })).toThrow("no logout token");
  });

  test("ends sessions that began before it, or within the tolerance after it", () => {
    const at = 1_000_000;
    expect([0, 29_999, 30_000, 30_001].map((later) => startsBefore(at + later, at))).toEqual([
      ...[true, true, true, false],
    ]);
  });
});

test("names at most 200 groups of a person, and none where the provider decides none", () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `group ${index}`);
  const given = (teams: unknown, claim = "teams") =>
    groupNamesOf(rules({ groupsClaim: claim }), readClaims({ ...WHO, teams }));
  expect([199, 200, 201].map((count) => given(names(count))?.length)).toEqual([199, 200, 200]);
  expect([given(["a", 7, null]), given("a"), given({ a: 1 }), given(undefined)]).toEqual([
    ["a"],
    ["a"],
    [],
    [],
  ]);
  expect(given(["a"], "")).toBeUndefined();
});
