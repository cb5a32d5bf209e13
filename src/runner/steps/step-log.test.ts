import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../test/harness/seed.ts";
import { type LogChunk, StepLog } from "./step-log.ts";

/** Returns a receiver that accepts pieces one at a time, when the test lets it. */
function receiver() {
  const pieces: { offset: number; text: string }[] = [];
  const waiting: { resolve(): void; reject(error: Error): void }[] = [];
  let atOnce = 0;
  let arrived = Promise.withResolvers<void>();
  return {
    pieces,
    text: () => pieces.map(({ text }) => text).join(""),
    /** Returns the next piece; waits for it if there is none. */
    async next() {
      if (waiting.length === 0) await arrived.promise;
      return waiting.shift() ?? { resolve: () => undefined, reject: () => undefined };
    },
    deliver: ({ offset, data }: LogChunk) => {
      expect(++atOnce).toBe(1);
      pieces.push({ offset, text: Buffer.from(data).toString() });
      arrived.resolve();
      arrived = Promise.withResolvers();
      return new Promise<void>((resolve, reject) => waiting.push({ resolve, reject })).finally(
        () => atOnce--,
      );
    },
  };
}

const bytes = (text: string) => Buffer.from(text);
const NEVER_MS = 1_000_000;

describe("what a step writes", () => {
  test("goes after the interval, together", async () => {
    const pieces: string[] = [];
    const sent = Promise.withResolvers<void>();
    const log = new StepLog(
      async ({ data }) => {
        pieces.push(Buffer.from(data).toString());
        sent.resolve();
      },
      { intervalMs: 50 },
    );
    const started = performance.now();
    await log.write(bytes("a"));
    await log.write(bytes("b"));
    expect(pieces).toEqual([]);
    await sent.promise;
    // Timers have a resolution of one millisecond.
    expect(performance.now() - started).toBeGreaterThanOrEqual(49);
    expect(pieces).toEqual(["ab"]);
    await log.close();
  });

  test.each([
    [3, 0],
    [4, 1],
    [5, 1],
  ])("goes at once when it fills a piece of 4: %d bytes make %d pieces", async (count, pieces) => {
    const sent: number[] = [];
    const log = new StepLog(async ({ data }) => void sent.push(data.length), {
      intervalMs: NEVER_MS,
      pieceBytes: 4,
    });
    await log.write(Buffer.alloc(count));
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent.length).toBeGreaterThanOrEqual(pieces);
    expect(sent[0]).toBe(pieces === 0 ? undefined : 4);
    await log.close();
    expect(sent.reduce((sum, size) => sum + size, 0)).toBe(count);
  });

  test("goes in pieces no larger than allowed, each where the one before ended", async () => {
    const to = receiver();
    const log = new StepLog(to.deliver, { intervalMs: NEVER_MS, pieceBytes: 4 });
    await log.write(bytes("0123456789"));
    const closing = log.close();
    for (let piece = 0; piece < 3; piece++) (await to.next()).resolve();
    await closing;
    expect(to.pieces).toEqual([
      { offset: 0, text: "0123" },
      { offset: 4, text: "4567" },
      { offset: 8, text: "89" },
    ]);
  });

  test("waits in the writer while four pieces wait for the receiver", async () => {
    const to = receiver();
    const log = new StepLog(to.deliver, { intervalMs: NEVER_MS, pieceBytes: 4 });
    await log.write(bytes("0123456789abcdef"));
    let isThrough = false;
    const writing = log.write(bytes("g")).then(() => {
      isThrough = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isThrough).toBe(false);
    (await to.next()).resolve();
    await writing;
    const closing = log.close();
    for (let piece = 0; piece < 4; piece++) (await to.next()).resolve();
    await closing;
    expect(to.text()).toBe("0123456789abcdefg");
  });

  test("that comes while a piece is under way waits for the interval again", async () => {
    const to = receiver();
    const log = new StepLog(to.deliver, { intervalMs: NEVER_MS, pieceBytes: 4 });
    await log.write(bytes("0123"));
    await log.write(bytes("4"));
    (await to.next()).resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(to.pieces).toHaveLength(1);
    const closing = log.close();
    (await to.next()).resolve();
    await closing;
    expect(to.text()).toBe("01234");
  });

  test("is nothing when nothing is written", async () => {
    const to = receiver();
    await new StepLog(to.deliver).close();
    expect(to.pieces).toEqual([]);
  });

  test("arrives whole and in order, however it is cut", async () => {
    const whole = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(whole, fc.integer({ min: 1, max: 7 }), async (writes, pieceBytes) => {
        const pieces: Buffer[] = [];
        const log = new StepLog(
          async ({ offset, data }) => {
            expect(offset).toBe(Buffer.concat(pieces).length);
            expect(data.length).toBeGreaterThan(0);
            expect(data.length).toBeLessThanOrEqual(pieceBytes);
            await Promise.resolve();
            pieces.push(Buffer.from(data));
          },
          { intervalMs: 0, pieceBytes },
        );
        await Promise.all(writes.map((write) => log.write(write)));
        await log.close();
        expect(Buffer.concat(pieces)).toEqual(Buffer.concat(writes));
      }),
      replay,
    );
  });
});

describe("a piece that cannot be delivered", () => {
  test("ends the log: every later call fails alike and nothing more is sent", async () => {
    const to = receiver();
    const log = new StepLog(to.deliver, { intervalMs: NEVER_MS, pieceBytes: 4 });
    await log.write(bytes("01234567"));
    const writing = log.write(Buffer.alloc(20));
    (await to.next()).reject(new Error("the lease is lost"));
    await expect(writing).rejects.toThrow("the lease is lost");
    await expect(log.write(bytes("8"))).rejects.toThrow("the lease is lost");
    await expect(log.close()).rejects.toThrow("the lease is lost");
    expect(to.pieces).toHaveLength(1);
  });

  test("is reported by close when nobody writes any more", async () => {
    const log = new StepLog(() => Promise.reject(new Error("the lease is lost")));
    await log.write(bytes("a"));
    await expect(log.close()).rejects.toThrow("the lease is lost");
  });
});
