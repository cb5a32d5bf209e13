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
  test("lets a tenth of a minute's calls through at once, and one more when the next has come back", () => {
    const buckets = new CallBuckets(600);
    for (let calls = 0; calls < 60; calls++) expect(buckets.take("key", 0)).toBe(0);
    const wait = buckets.take("key", 0);
    expect(wait).toBeCloseTo(MINUTE_MS / 540);
    expect(buckets.take("key", wait - 1)).toBeGreaterThan(0);
    expect(buckets.take("key", wait + 0.01)).toBe(0);
    expect(buckets.take("another", 0)).toBe(0);
  });

  test("lets no more than the limit through in a minute, and no fewer than nine tenths", () => {
    const buckets = new CallBuckets(6000);
    const [first, second] = [minuteOf(buckets, 0), minuteOf(buckets, MINUTE_MS)];
    expect(first).toBeLessThanOrEqual(6000);
    expect(first).toBeGreaterThan(5990);
    expect(second).toBeGreaterThanOrEqual(5399);
    expect(second).toBeLessThanOrEqual(5401);
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
  /** Each tells the others once a second, a little after the calls. @param shares of the calls at each */
  function minuteAt(
    servers: readonly CallBuckets[],
    isBusy: (server: number, ms: number) => boolean,
  ): number {
    let admitted = 0;
    for (let ms = 0; ms < MINUTE_MS; ms += 5) {
      for (const [index, server] of servers.entries())
        if (isBusy(index, ms)) while (server.take("key", ms) === 0) admitted += 1;
      if (ms % 1000 === 995) {
        for (const teller of servers)
          for (const [key, calls] of teller.takeUnshared(10))
            for (const other of servers) if (other !== teller) other.hear(key, calls, ms);
      }
    }
    return admitted;
  }

  test.each([
    ["all of three", 3, () => true],
    ["one of three", 3, (server: number) => server === 1],
    ["each of three in turn", 3, (server: number, ms: number) => Math.floor(ms / 1000) % 3 === server],
    [
      "two, one of them half of the time",
      2,
      (server: number, ms: number) => server === 0 || ms % 2000 < 1000,
    ],
  ])("let the limit through within a tenth when %s are called", (_, count, isBusy) => {
    const servers = Array.from({ length: count }, () => new CallBuckets(6000));
    const admitted = minuteAt(servers, isBusy);
    expect(admitted).toBeGreaterThanOrEqual(5400);
    expect(admitted).toBeLessThanOrEqual(6600);
  });

  test("receive nothing about those who call little", () => {
    const buckets = new CallBuckets(6000);
    for (let calls = 0; calls < 120; calls++) buckets.take("little", 0);
    expect(buckets.takeUnshared(10)).toEqual([]);
    buckets.take("little", 0);
    expect(buckets.takeUnshared(10)).toEqual([["little", 121]]);
    expect(buckets.takeUnshared(10)).toEqual([]);
  });
});
