import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Others } from "../../store/listeners.ts";
import { type CallLimitSettings, createCallLimits, networkOf } from "./call-limits.ts";

const WIDE: CallLimitSettings = {
  rateLimits: "on",
  callsPerToken: 1_000_000,
  callsPerAccount: 1_000_000,
  callsPerServer: 0,
  refusalsPerAddress: 1_000_000,
};

const callerOf = (organizationId: string, accountId = `account-of-${organizationId}`): Caller => ({
  organizationId,
  accountId,
  subject: create(SubjectSchema, { id: accountId }),
  role: "member",
  tokenId: `token-of-${accountId}`,
  readOnly: false,
});

describe("the limits of calls", () => {
  test("tell a caller of a limit when less than half of it is left, and refuse when nothing is", () => {
    const limits = createCallLimits({ ...WIDE, callsPerToken: 200 }, undefined, () => 0);
    const caller = callerOf("one");
    for (let calls = 0; calls < 5; calls++) expect(limits.admit(caller)).toBeUndefined();
    expect(limits.admit(caller)).toEqual({ scope: "token", limit: 200, remaining: 4, resetSeconds: 2 });
    for (let calls = 6; calls < 10; calls++) expect(limits.admit(caller)?.refusal).toBeUndefined();
    const refused = limits.admit(caller);
    expect(refused).toMatchObject({ scope: "token", remaining: 0, refusal: { retryAfterSeconds: 1 } });
    expect(limits.refused.get("token")).toBe(1);
  });

  test("share a server that is asked for too much among organizations, whatever accounts they have", () => {
    let now = 0;
    const limits = createCallLimits({ ...WIDE, callsPerServer: 6000 }, undefined, () => now);
    const admitted = () => {
      const counts = { greedy: 0, small: 0 };
      for (let calls = 0; calls < 500; calls++) {
        const state = limits.admit(callerOf("greedy", `account-${calls}`));
        if (!state?.refusal) counts.greedy += 1;
        else expect([state.scope, state.limit]).toEqual(["organization", undefined]);
      }
      for (let calls = 0; calls < 10; calls++)
        if (!limits.admit(callerOf("small"))?.refusal) counts.small += 1;
      return counts;
    };
    expect(admitted()).toEqual({ greedy: 500, small: 10 });
    now = 1000;
    expect(admitted()).toEqual({ greedy: 90, small: 10 });
  });

  test("are those of all servers, of which each tells what it has let through", () => {
    const listeners: ((text: string) => void)[] = [];
    const others: Others = {
      // The first one tells, and does not hear itself.
      tell(text) {
        for (const listener of listeners.slice(1)) listener(text);
      },
      onMessage: (listener) => void listeners.push(listener),
    };
    const settings = { ...WIDE, callsPerToken: 200, refusalsPerAddress: 20 };
    const [one, other] = [0, 1].map(() => createCallLimits(settings, others, () => 0));
    for (let calls = 0; calls < 10; calls++) one?.admit(callerOf("one"));
    one?.noteRefusal("192.0.2.1");
    expect(other?.ofAddress("192.0.2.1")).toBeUndefined();
    one?.exchange();
    expect(other?.admit(callerOf("one"))).toMatchObject({ scope: "token", refusal: {} });
    expect(other?.ofAddress("192.0.2.1")).toMatchObject({ scope: "address", refusal: {} });
    expect(other?.admit(callerOf("another"))).toBeUndefined();
  });

  test("divide what may come at once among the servers that are there, until one is silent", () => {
    let [now, told] = [0, ""];
    let hear: (text: string) => void = () => undefined;
    const others: Others = {
      tell: (text) => {
        told = text;
      },
      onMessage(listener) {
        hear = listener;
      },
    };
    const limits = createCallLimits({ ...WIDE, callsPerToken: 6000 }, others, () => now, "one");
    const atOnce = (account: string) => {
      let calls = 0;
      while (!limits.admit(callerOf("one", account))?.refusal) calls += 1;
      return calls;
    };
    expect(atOnce("ann")).toBe(300);
    hear("here other");
    limits.exchange();
    expect(told.split("\n")).toContain("here one");
    expect(atOnce("ben")).toBe(150);
    now = 36_000;
    limits.exchange();
    expect(atOnce("cleo")).toBe(300);
  });

  test("ignore what is no message of theirs", () => {
    let hear: (text: string) => void = () => undefined;
    const others: Others = {
      tell() {},
      onMessage(listener) {
        hear = listener;
      },
    };
    const limits = createCallLimits(WIDE, others, () => 0);
    hear('token -5 key\nnobody 5 key\ntoken x key\n{"a":1}\n\ntoken 5');
    expect(limits.admit(callerOf("one"))).toBeUndefined();
  });
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:db8:0:0:1:2:3:4", "2001:db8:0:0::/64"],
  ["2001:db8:0:1::", "2001:db8:0:1::/64"],
  ["::1", "0:0:0:0::/64"],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
