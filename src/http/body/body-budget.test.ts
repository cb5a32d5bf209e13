import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { BodyBudget } from "./body-budget.ts";

const KIB = 1024;
const budget = () => new BodyBudget({ callerBytes: 100 * KIB, totalBytes: 150 * KIB });

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
});
