import { describe, expect, test } from "@jest/globals";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { DomainError } from "../error.ts";
import { requireHeldLease, requireHostOfWork, requireNoSteps, requireWorkKind } from "./lease.ts";

const NOW = 1_000;
const LEASE = { leased_by: "runner", fence: 3, expires_at: NOW + 1, blocked_at: null };
const HOLDER = { runnerId: "runner", fence: 3n };

function reasonOf(act: () => unknown): ErrorReason | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return (error as DomainError).reason;
  }
}

describe("a lease", () => {
  test("is held by its runner until it expires", () => {
    expect(requireHeldLease(LEASE, HOLDER, NOW)).toBe(LEASE);
  });

  test.each([
    ["absent", undefined, HOLDER, ErrorReason.LEASE_LOST],
    ["of another runner", { ...LEASE, leased_by: "other" }, HOLDER, ErrorReason.LEASE_LOST],
    ["given back", { ...LEASE, leased_by: null }, HOLDER, ErrorReason.LEASE_LOST],
    ["newer", LEASE, { ...HOLDER, fence: 2n }, ErrorReason.LEASE_LOST],
    ["at its end", { ...LEASE, expires_at: NOW }, HOLDER, ErrorReason.LEASE_LOST],
    ["of a blocked account", { ...LEASE, blocked_at: NOW }, HOLDER, ErrorReason.ACCOUNT_BLOCKED],
  ])("that is %s is not held", (_, lease, holder, reason) => {
    expect(reasonOf(() => requireHeldLease(lease, holder, NOW))).toBe(reason);
  });

  test("is on work of its kind only", () => {
    const lease = { kind: WorkKind.AGENT };
    expect(() => requireWorkKind(lease, WorkKind.AGENT, "an agent run")).not.toThrow();
    expect(() => requireWorkKind(lease, WorkKind.ACTION, "an action")).toThrow(
      "the lease is not on an action",
    );
  });
});

test("only actions report steps, and logs of them", () => {
  expect(() => requireNoSteps({ steps: [], logs: [] })).not.toThrow();
  expect(() => requireNoSteps({ steps: [{} as never], logs: [] })).toThrow("only actions have steps");
  expect(() => requireNoSteps({ steps: [], logs: [{} as never] })).toThrow(
    "only the steps of actions have logs",
  );
});

test("a credential is asked for a host that the work begins from", () => {
  const addresses = ["https://git.example.org/a/b.git"];
  expect(() => requireHostOfWork("git.example.org", addresses)).not.toThrow();
  expect(() => requireHostOfWork("example.org", addresses)).toThrow("no repository at this host");
});
