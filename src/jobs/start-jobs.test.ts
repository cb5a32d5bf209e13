import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { startJobs } from "./start-jobs.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Returns a job whose runs end when the test resolves them. */
function controlledJob(name: string, everyMs: number) {
  const runs: PromiseWithResolvers<void>[] = [];
  const run = () => {
    const end = Promise.withResolvers<void>();
    runs.push(end);
    return end.promise;
  };
  return { job: { name, everyMs, run }, runs };
}

function testLog() {
  const lines: [object, string][] = [];
  return { lines, error: (facts: object, message: string) => void lines.push([facts, message]) };
}

describe("jobs", () => {
  test("run at their own intervals, the first time after one", async () => {
    let fast = 0;
    let slow = 0;
    const jobs = startJobs(
      [
        { name: "fast", everyMs: 10, run: async () => ++fast },
        { name: "slow", everyMs: 25, run: async () => ++slow },
      ],
      testLog(),
    );
    await jest.advanceTimersByTimeAsync(9);
    expect([fast, slow]).toEqual([0, 0]);
    await jest.advanceTimersByTimeAsync(91);
    expect([fast, slow]).toEqual([10, 4]);
    await jobs.stop();
  });

  test("are never run twice at once, while others go on", async () => {
    const { job, runs } = controlledJob("held", 10);
    let others = 0;
    const jobs = startJobs([job, { name: "other", everyMs: 10, run: async () => ++others }], testLog());
    await jest.advanceTimersByTimeAsync(50);
    expect([runs.length, others]).toEqual([1, 5]);
    runs[0]?.resolve();
    await jest.advanceTimersByTimeAsync(10);
    expect(runs).toHaveLength(2);
    runs[1]?.resolve();
    await jobs.stop();
  });

  test.each([
    ["rejects", () => Promise.reject(new Error("no"))],
    [
      "throws at once",
      () => {
        throw new Error("no");
      },
    ],
  ])("are logged by name when one %s, and run again at the next interval", async (_, run) => {
    const log = testLog();
    const jobs = startJobs([{ name: "failing", everyMs: 10, run }], log);
    await jest.advanceTimersByTimeAsync(20);
    expect(log.lines).toEqual(Array(2).fill([{ job: "failing", err: new Error("no") }, "a job failed"]));
    await jobs.stop();
  });

  test("stop after the current run, and start no other", async () => {
    const { job, runs } = controlledJob("held", 10);
    const jobs = startJobs([job], testLog());
    await jest.advanceTimersByTimeAsync(10);
    let stopped = false;
    const stopping = jobs.stop().then(() => {
      stopped = true;
    });
    await jest.advanceTimersByTimeAsync(100);
    expect([runs.length, stopped]).toEqual([1, false]);
    runs[0]?.resolve();
    await stopping;
    await jest.advanceTimersByTimeAsync(100);
    expect(runs).toHaveLength(1);
  });

  test("keep no process alive", async () => {
    jest.useRealTimers();
    const set = jest.spyOn(globalThis, "setInterval");
    const jobs = startJobs([{ name: "idle", everyMs: 60_000, run: async () => undefined }], testLog());
    const timers = set.mock.results.map(({ value }) => value as NodeJS.Timeout);
    set.mockRestore();
    expect(timers.map((timer) => timer.hasRef())).toEqual([false]);
    await jobs.stop();
  });
});
