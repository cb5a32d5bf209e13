import { describe, expect, test } from "@jest/globals";
import type { Caller } from "../../domain/identity/caller.ts";
import { createAccountSignals } from "./account-signals.ts";

const caller = (tokenId: string, role: Caller["role"] = "member") => ({ tokenId, role }) as Caller;
const refusal = new Error("blocked");

describe("the open streams", () => {
  test("of a caller that may not go on are signalled with the reason, and no others", async () => {
    const signals = createAccountSignals(async ({ tokenId }) => (tokenId === "cut" ? refusal : undefined));
    const [first, second] = [signals.watch(caller("cut"), "Watch"), signals.watch(caller("cut"), "Reflect")];
    const kept = signals.watch(caller("kept"), "Watch");
    await signals.check();
    expect([first.signal.reason, second.signal.reason]).toEqual([refusal, refusal]);
    expect(kept.signal.aborted).toBe(false);
  });

  test("are judged anew at each check, once for all that are alike", async () => {
    const judged: string[] = [];
    let isCut = false;
    const signals = createAccountSignals(async ({ tokenId, role }, operation) => {
      judged.push(`${tokenId} ${role} ${operation}`);
      return isCut ? refusal : undefined;
    });
    const watches = [
      signals.watch(caller("one"), "Watch"),
      signals.watch(caller("one"), "Watch"),
      signals.watch(caller("one", "administrator"), "Watch"),
    ];
    await signals.check();
    expect(judged).toEqual(["one member Watch", "one administrator Watch"]);
    isCut = true;
    await signals.check();
    expect(watches.map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
  });

  test("are forgotten once they are over", async () => {
    let judged = 0;
    const signals = createAccountSignals(async () => {
      judged += 1;
      return refusal;
    });
    const watch = signals.watch(caller("gone"), "Watch");
    watch.close();
    watch.close();
    await signals.check();
    expect([judged, watch.signal.aborted]).toEqual([0, false]);
  });
});
