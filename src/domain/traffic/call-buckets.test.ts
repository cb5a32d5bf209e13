import { describe, expect, test } from "@jest/globals";
import { CallBuckets } from "./call-buckets.ts";

const MINUTE_MS = 60_000;

/** Calls as often as it may for a minute, every `stepMs`. @returns how many calls went on */
function minuteOf(buckets: CallBuckets, startMs: number, stepMs = 1): number {
  let admitted = 0;
  for (let ms = startMs; ms < startMs + MINUTE_MS; ms += stepMs)
    while (buckets.take("key", ms) === 0) admitted += 1;
  return admitted;
}

describe("a bucket", () => {
  test("lets a twentieth of a minute's calls through at once, and one more when the next has come back", () => {
    const buckets = new CallBuckets(600);
    for (let calls = 0; calls < 30; calls++) expect(buckets.take("key", 0)).toBe(0);
    const wait = buckets.take("key", 0);
    expect(wait).toBeCloseTo(MINUTE_MS / 588);
    expect(buckets.take("key", wait - 1)).toBeGreaterThan(0);
    expect(buckets.take("key", wait + 0.01)).toBe(0);
    expect(buckets.take("another", 0)).toBe(0);
  });

  test("lets no more than 103 % of the limit through in a minute, and no fewer than 98 %", () => {
    const buckets = new CallBuckets(6000);
    const [first, second] = [minuteOf(buckets, 0), minuteOf(buckets, MINUTE_MS)];
    expect(first).toBeLessThanOrEqual(6180);
    expect(first).toBeGreaterThan(5990);
    expect(second).toBeGreaterThanOrEqual(5879);
    expect(second).toBeLessThanOrEqual(5881);
  });

  test("of the smallest limit lets one call through, and others a while later", () => {
    const buckets = new CallBuckets(1);
    expect(buckets.take("key", 0)).toBe(0);
    expect(buckets.take("key", MINUTE_MS)).toBeGreaterThan(0);
    expect(buckets.take("key", 10 * MINUTE_MS + 1)).toBe(0);
  });

  test("that is only looked at is not made", () => {
    const buckets = new CallBuckets(600);
    expect([buckets.waitOf("key", 0), buckets.size]).toEqual([0, 0]);
    while (buckets.take("key", 0) === 0);
    expect(buckets.waitOf("key", 0)).toBeGreaterThan(0);
  });
});

test("as many keys as come are held in bounded memory", () => {
  const buckets = new CallBuckets(600);
  for (let key = 0; key < 350_000; key++) buckets.take(String(key), key / 10_000);
  expect(buckets.size).toBeLessThanOrEqual(200_000);
  buckets.take("key", 200_000);
  buckets.take("key", 400_000);
  expect(buckets.size).toBe(1);
});

describe("several servers", () => {
  const LIMIT = 6000;
  const SECOND_MS = 1000;
  const SECONDS = 240;

  /**
   * Calls as often as `isBusy` lets it, for four minutes; each server tells the others once a second, at a time of its
   * own. @returns the calls that went on in each second
   */
  function callsOf(count: number, wanted: (server: number, ms: number) => number): number[] {
    const servers = Array.from({ length: count }, () => new CallBuckets(LIMIT));
    for (const server of servers) server.divideAmong(count);
    const admitted = new Array<number>(SECONDS).fill(0);
    for (let ms = 0; ms < SECONDS * SECOND_MS; ms += 5) {
      const second = Math.floor(ms / SECOND_MS);
      for (const [index, server] of servers.entries())
        for (let calls = wanted(index, ms); calls > 0 && server.take("key", ms) === 0; calls--)
          admitted[second] = (admitted[second] ?? 0) + 1;
      for (const [index, teller] of servers.entries()) {
        if (ms % SECOND_MS !== 100 + 200 * index) continue;
        for (const [key, calls] of teller.takeUnsharedCalls(10))
          for (const other of servers) if (other !== teller) other.subtractRemote(key, calls, ms);
      }
    }
    return admitted;
  }

  /** The calls of each minute, from every second on. */
  const minutes = (seconds: readonly number[]) =>
    seconds
      .slice(0, -59)
      .map((_, from) => seconds.slice(from, from + 60).reduce((sum, calls) => sum + calls));

  const ALL = Number.POSITIVE_INFINITY;
  test.each<[string, number, (server: number, ms: number) => number]>([
    ["both of two", 2, () => ALL],
    ["all of three", 3, () => ALL],
    ["all of four", 4, () => ALL],
    ["one of three", 3, (server) => (server === 1 ? ALL : 0)],
    ["each of three in turn", 3, (server, ms) => (Math.floor(ms / 1000) % 3 === server ? ALL : 0)],
    ["each of three for five seconds", 3, (server, ms) => (Math.floor(ms / 5000) % 3 === server ? ALL : 0)],
    ["two, one of them half of the time", 2, (server, ms) => (server === 0 || ms % 2000 < 1000 ? ALL : 0)],
    // A call every 10 ms is a limit's worth at each: no bucket gets low by it alone.
    ["all of three, as fast as one may be", 3, (_, ms) => (ms % 10 === 0 ? 1 : 0)],
    ["all of three in a burst, then evenly", 3, (_, ms) => (ms < 1000 ? ALL : ms % 10 === 0 ? 1 : 0)],
  ])("let the limit through within a tenth in each minute when %s are called", (_, count, wanted) => {
    const calls = minutes(callsOf(count, wanted));
    expect(Math.max(...calls)).toBeLessThanOrEqual(1.1 * LIMIT);
    expect(Math.min(...calls)).toBeGreaterThanOrEqual(0.9 * LIMIT);
  });

  test("let no more than a tenth more through after a pause", () => {
    const calls = minutes(callsOf(3, (_, ms) => (ms > 90_000 && ms < 120_000 ? 0 : ALL)));
    expect(Math.max(...calls)).toBeLessThanOrEqual(1.1 * LIMIT);
  });

  test("receive nothing about those who call little, until it is more", () => {
    const buckets = new CallBuckets(LIMIT);
    for (let calls = 0; calls < 9; calls++) buckets.take("little", 0);
    expect(buckets.takeUnsharedCalls(10)).toEqual([]);
    buckets.take("little", 30_000);
    expect(buckets.takeUnsharedCalls(10)).toEqual([["little", 10]]);
    expect(buckets.takeUnsharedCalls(10)).toEqual([]);
  });
});
