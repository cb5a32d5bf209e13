import { describe, expect, test } from "@jest/globals";
import {
  ATTEMPTS_MS,
  attemptWaitMs,
  displacedLogin,
  machineName,
  pollOutcome,
  shownCode,
  siteOf,
  slowerInterval,
  typedCode,
} from "./device-login.ts";

describe("the answer to a device that polls", () => {
  const login = { expires_at: 1_000_000, interval_ms: 5_000, polled_at: null, user_id: null, denied: 0 };

  test.each([
    ["before its first question", {}, 0, "authorization_pending"],
    ["a moment too early", { polled_at: 1_000 }, 5_999, "slow_down"],
    ["in time", { polled_at: 1_000 }, 6_000, "authorization_pending"],
    [
      "sooner than the longer interval that it was given",
      { polled_at: 1_000, interval_ms: 10_000 },
      10_999,
      "slow_down",
    ],
    ["once it is allowed, also too early", { polled_at: 1_000, user_id: "u" }, 1_001, "allowed"],
    ["once it is refused", { user_id: "u", denied: 1 }, 1, "access_denied"],
    ["a moment before its end", { user_id: "u" }, 999_999, "allowed"],
    ["at its end, though it is allowed", { user_id: "u" }, 1_000_000, "expired_token"],
    ["at its end, though it is refused", { user_id: "u", denied: 1 }, 1_000_000, "expired_token"],
  ])("%s", (_, changed, now, outcome) => {
    expect(pollOutcome({ ...login, ...changed }, now)).toBe(outcome);
  });

  test.each([
    ["2001:db8:1:a::/64", "2001:db8:1:"],
    ["0:0:0:0::/64", "0:0:0:"],
    ["10.0.0.1", "10.0.0."],
    ["203.0.113.254", "203.0.113."],
    ["unknown", undefined],
  ])("the networks of the site of %s begin with %s", (network, site) => {
    expect(siteOf(network)).toBe(site);
  });

  test("waits longer after each question that came too early, and a minute at most", () => {
    expect(slowerInterval({ interval_ms: 5_000 })).toBe(10_000);
    expect(slowerInterval({ interval_ms: 58_000 })).toBe(60_000);
  });
});

describe("the login that makes way when all places are taken", () => {
  const open = (...networks: string[]) => networks.map((network, id) => ({ id, network }));
  const of = (network: string, ...networks: string[]) => displacedLogin(open(...networks), network)?.id;

  test("is the oldest of the site with the most", () => {
    expect(of("198.51.100.1", "192.0.2.1", "203.0.113.1", "203.0.113.2", "203.0.113.3")).toBe(1);
    expect(of("198.51.100.1", "192.0.2.1", "2001:db8:0:a::/64", "2001:db8:0:b::/64")).toBe(1);
  });

  test("is none if the newcomer's site would have no fewer than the others", () => {
    expect(of("198.51.100.1", "192.0.2.1", "203.0.113.1")).toBeUndefined();
    expect(of("198.51.100.1", "198.51.100.2", "203.0.113.1", "203.0.113.2")).toBeUndefined();
    expect(of("203.0.113.9", "192.0.2.1", "203.0.113.1", "203.0.113.2")).toBeUndefined();
  });
});

test("a code is typed as people type it", () => {
  expect(shownCode("WDJBMJHT")).toBe("WDJB-MJHT");
  for (const text of ["WDJB-MJHT", "wdjbmjht", " wdjb mjht\n"]) expect(typedCode(text)).toBe("WDJBMJHT");
});

test.each([
  ["laptop", "laptop"],
  ["", "a machine without a name"],
  ["\u0000\u202e ", "a machine without a name"],
  ["build\u202e\u0007\nserver", "build server"],
  ["x".repeat(65), "x".repeat(64)],
  ["🙂".repeat(65), "🙂".repeat(64)],
])("the name %j of a machine is shown as %j", (name, shown) => {
  expect(machineName(name)).toBe(shown);
});

test("wrong codes are looked at until there are too many, and again after a time", () => {
  const at = (count: number, now: number) => attemptWaitMs({ since: 7, count }, 10, now);
  expect([attemptWaitMs(undefined, 10, 7), at(9, 7), at(10, 7), at(11, 8)]).toEqual([
    0,
    0,
    ATTEMPTS_MS,
    ATTEMPTS_MS - 1,
  ]);
  expect(at(10, 7 + ATTEMPTS_MS)).toBe(0);
});
