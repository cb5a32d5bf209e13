import { describe, expect, test } from "@jest/globals";
import { FairShares, fairShare } from "./fair-shares.ts";

describe("a fair share", () => {
  test.each([
    ["all get what they want", [3, 4, 3], 10, Number.POSITIVE_INFINITY],
    ["one wants all", [1, 2, 100], 12, 9],
    ["two want all", [2, 100, 100], 12, 5],
    ["nobody wants little", [100, 100], 12, 6],
    ["there are more than calls", [5, 5, 5], 2, 1],
    ["nobody is there", [], 2, Number.POSITIVE_INFINITY],
  ])("when %s", (_, wanted, whole, share) => {
    expect(fairShare(wanted, whole)).toBe(share);
  });
});

/** Lets each organization call as often in one second; returns how many of its calls went on. */
function second(shares: FairShares, wanted: Readonly<Record<string, number>>, startMs: number) {
  return Object.fromEntries(
    Object.entries(wanted).map(([organization, calls]) => [
      organization,
      Array.from({ length: calls }, () => shares.admits(organization, startMs)).filter(Boolean).length,
    ]),
  );
}

describe("the shares of a server", () => {
  test("leave a small organization what it wants when another wants all", () => {
    const shares = new FairShares(100);
    const wanted = { greedy: 1000, small: 20 };
    second(shares, wanted, 0);
    expect(second(shares, wanted, 1000)).toEqual({ greedy: 80, small: 20 });
    expect(second(shares, wanted, 2000)).toEqual({ greedy: 80, small: 20 });
  });

  test("let one have all while nobody else calls", () => {
    const shares = new FairShares(100);
    second(shares, { greedy: 99 }, 0);
    expect(second(shares, { greedy: 100 }, 1000)).toEqual({ greedy: 100 });
    expect(second(shares, { greedy: 101 }, 2000)).toEqual({ greedy: 101 });
    expect(second(shares, { greedy: 101 }, 3000)).toEqual({ greedy: 100 });
  });

  test("forget what was wanted before a pause, and are none with 0", () => {
    const shares = new FairShares(10);
    second(shares, { greedy: 1000 }, 0);
    expect(second(shares, { greedy: 30 }, 5000)).toEqual({ greedy: 30 });
    const none = new FairShares(0);
    second(none, { greedy: 1000 }, 0);
    expect(second(none, { greedy: 1000 }, 1000)).toEqual({ greedy: 1000 });
  });
});
