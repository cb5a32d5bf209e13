import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { BodyBudget } from "./body-budget.ts";

const KIB = 1024;
const budget = (now = () => 0) => new BodyBudget({ callerBytes: 100 * KIB, totalBytes: 150 * KIB, now });

describe("the budget of bodies", () => {
  test("is one of each caller, up to its last byte", () => {
    const bodies = budget();
    const first = bodies.hold("a");
    first.set(60 * KIB);
    const second = bodies.hold("a");
    expect(() => second.set(40 * KIB + 1)).toThrow(/^\[resource_exhausted\] your requests .* 102400 bytes/);
    second.set(40 * KIB);
    bodies.hold("b").set(50 * KIB);
  });

  test("is one of all callers together", () => {
    const bodies = budget();
    bodies.hold("a").set(100 * KIB);
    const other = bodies.hold("b");
    expect(() => other.set(50 * KIB + 1)).toThrow(/^\[resource_exhausted\] the requests .* 153600 bytes/);
    other.set(50 * KIB);
  });

  test.each([-1, 0, 1])("is full at its last byte: %d past it", (past) => {
    const ask = (bodies: BodyBudget, caller: string, bytes: number) => () =>
      bodies.hold(caller).set(bytes + past);
    const ofCaller = budget();
    ofCaller.hold("a").set(60 * KIB);
    const ofAll = budget();
    ofAll.hold("a").set(100 * KIB);
    const answers = [ask(ofCaller, "a", 40 * KIB), ask(ofAll, "b", 50 * KIB), ask(budget(), "a", 100 * KIB)];
    for (const each of answers) {
      if (past > 0) expect(each).toThrow("[resource_exhausted]");
      else expect(each).not.toThrow();
    }
  });

  test("has room again for what is released, and for what became smaller", () => {
    const bodies = budget();
    const first = bodies.hold("a");
    first.set(100 * KIB);
    first.set(50 * KIB);
    const second = bodies.hold("a");
    second.set(50 * KIB);
    expect(() => first.set(100 * KIB)).toThrow(ConnectError);
    second.release();
    second.release();
    first.set(100 * KIB);
  });

  test("does not count small bodies", () => {
    const bodies = budget();
    for (let count = 0; count < 100; count++) bodies.hold("a").set(16 * KIB);
    bodies.hold("a").set(100 * KIB);
  });

  /** Begins a body that can still be refused; its `refused` is whether it was. */
  function arrive(bodies: BodyBudget, caller: string, bytes: number) {
    const hold = bodies.hold(caller);
    const body = { hold, refused: false };
    hold.arriving(() => {
      body.refused = true;
    });
    hold.set(bytes);
    return body;
  }

  test("refuses the youngest of the caller that goes past its own", () => {
    const bodies = budget();
    const [first, second] = [arrive(bodies, "a", 50 * KIB), arrive(bodies, "a", 50 * KIB)];
    const other = arrive(bodies, "b", 20 * KIB);
    first.hold.set(50 * KIB + 1);
    expect([first.refused, second.refused, other.refused]).toEqual([false, true, false]);
    expect(() => second.hold.set(20 * KIB)).toThrow("[resource_exhausted] your requests");
    expect(() => second.hold.arrived()).toThrow("[resource_exhausted] your requests");
    // Its room is the first's.
    first.hold.set(100 * KIB);
  });

  test("refuses nobody for a caller that goes past its own", () => {
    const bodies = budget();
    const own = arrive(bodies, "a", 90 * KIB);
    const others = [1, 2].map(() => arrive(bodies, "b", 20 * KIB));
    expect(() => own.hold.set(100 * KIB + 1)).toThrow("[resource_exhausted] your requests");
    expect(others.map(({ refused }) => refused)).toEqual([false, false]);
  });

  test("refuses the youngest of the caller that holds the most, past that of all", () => {
    const bodies = budget();
    const [a1, a2, a3] = [1, 2, 3].map(() => arrive(bodies, "a", 25 * KIB));
    const [b1, b2] = [1, 2].map(() => arrive(bodies, "b", 30 * KIB));
    const newcomer = arrive(bodies, "c", 15 * KIB + 5 * KIB);
    const refused = () => [a1, a2, a3, b1, b2, newcomer].map((body) => body?.refused);
    expect(refused()).toEqual([false, false, true, false, false, false]);
    // Now b holds more than a.
    newcomer.hold.set(60 * KIB);
    expect(refused()).toEqual([false, false, true, false, true, false]);
  });

  test("refuses the youngest when each caller has one, so that the oldest arrives", () => {
    const bodies = budget();
    const all = ["a", "b", "c"].map((caller) => arrive(bodies, caller, 50 * KIB));
    expect(() => arrive(bodies, "d", 20 * KIB)).toThrow("[resource_exhausted] the requests");
    all[0]?.hold.set(100 * KIB);
    expect(all.map(({ refused }) => refused)).toEqual([false, false, true]);
    expect(() => all[1]?.hold.set(51 * KIB)).toThrow("[resource_exhausted] the requests");
  });

  test("refuses slow ones before: others are refused for their age, not for theirs", () => {
    let now = 0;
    const bodies = budget(() => now);
    const slow = arrive(bodies, "a", 70 * KIB);
    now = 5_000 + 70;
    const other = arrive(bodies, "b", 80 * KIB);
    expect(() => arrive(bodies, "c", 20 * KIB)).toThrow("[resource_exhausted]");
    now++;
    const third = arrive(bodies, "c", 20 * KIB);
    expect([slow.refused, other.refused, third.refused]).toEqual([true, false, false]);
  });

  test("refuses none that has arrived, and counts it as its caller's first", () => {
    const bodies = budget();
    const whole = arrive(bodies, "a", 60 * KIB);
    whole.hold.arrived();
    const next = arrive(bodies, "a", 40 * KIB);
    const other = arrive(bodies, "b", 50 * KIB);
    other.hold.set(90 * KIB);
    expect([whole.refused, next.refused, other.refused]).toEqual([false, true, false]);
    expect(() => other.hold.set(90 * KIB + 1)).toThrow("[resource_exhausted]");
  });

  test("lets bodies arrive however many begin again as soon as they are refused", () => {
    let now = 0;
    const bodies = budget(() => now);
    const wanted = 60 * KIB;
    const arrived = new Set<string>();
    const begun = new Map<string, { hold: ReturnType<BodyBudget["hold"]>; bytes: number }>();
    const callers = Array.from({ length: 12 }, (_, index) => `caller ${index}`);
    for (let round = 0; round < 2_000 && arrived.size < 12; round++) {
      now += 1;
      for (const caller of callers) {
        if (arrived.has(caller)) continue;
        const body = begun.get(caller) ?? { hold: bodies.hold(caller), bytes: 0 };
        if (!begun.has(caller)) body.hold.arriving(() => begun.delete(caller));
        begun.set(caller, body);
        try {
          body.bytes += 2 * KIB;
          body.hold.set(body.bytes);
        } catch {
          body.hold.release();
          begun.delete(caller);
        }
        if (begun.get(caller) !== body || body.bytes < wanted) continue;
        arrived.add(caller);
        body.hold.release();
      }
    }
    expect(arrived.size).toBe(12);
  });
});
