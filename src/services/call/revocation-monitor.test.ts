import { describe, expect, test } from "@jest/globals";
import type { Caller } from "../../domain/identity/caller.ts";
import { createRevocationMonitor } from "./revocation-monitor.ts";

const caller = (tokenId: string, role: Caller["role"] = "member") => ({ tokenId, role }) as Caller;
const revocation = new Error("blocked");

describe("the revocation monitor", () => {
  test("signals the streams of a revoked caller with the reason, and no others", async () => {
    const monitor = createRevocationMonitor(async ({ tokenId }) =>
      tokenId === "revoked" ? revocation : undefined,
    );
    const [first, second] = [
      monitor.watch(caller("revoked"), "Watch"),
      monitor.watch(caller("revoked"), "Reflect"),
    ];
    const other = monitor.watch(caller("allowed"), "Watch");
    await monitor.check();
    expect([first.signal.reason, second.signal.reason]).toEqual([revocation, revocation]);
    expect(other.signal.aborted).toBe(false);
  });

  test("checks again at each call, once for streams of the same kind", async () => {
    const checked: string[] = [];
    let isRevoked = false;
    const monitor = createRevocationMonitor(async ({ tokenId, role }, operation) => {
      checked.push(`${tokenId} ${role} ${operation}`);
      return isRevoked ? revocation : undefined;
    });
    const watches = [
      monitor.watch(caller("one"), "Watch"),
      monitor.watch(caller("one"), "Watch"),
      monitor.watch(caller("one", "administrator"), "Watch"),
    ];
    await monitor.check();
    expect(checked).toEqual(["one member Watch", "one administrator Watch"]);
    isRevoked = true;
    await monitor.check();
    expect(watches.map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
  });

  test("ignores streams that have ended", async () => {
    let checks = 0;
    const monitor = createRevocationMonitor(async () => {
      checks += 1;
      return revocation;
    });
    const watch = monitor.watch(caller("gone"), "Watch");
    watch.close();
    watch.close();
    await monitor.check();
    expect([checks, watch.signal.aborted]).toEqual([0, false]);
  });
});
