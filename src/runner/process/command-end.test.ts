import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import {
  commandFolder,
  isRunning,
  run,
  shell,
  signalGroup,
  stopAfterFirstLine,
} from "../../../test/harness/runner-command.ts";
import { createCommandRunner } from "./command.ts";

const folder = commandFolder();

describe("a program that hangs", () => {
  test("is ended at its time", async () => {
    const result = await run(shell("sleep 60", { timeoutMs: 50 }));
    expect(result).toMatchObject({ exit: null, signal: "SIGTERM", timedOut: true, stopped: false });
  });

  test("may end in its own way when it is asked to end", async () => {
    const { result } = await stopAfterFirstLine("trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait");
    expect(result).toMatchObject({ exit: 3, signal: null, stopped: true });
    expect(result.stdout.toString()).toBe("up\nbye\n");
  });

  test("is ended when the caller says so", async () => {
    const { result } = await stopAfterFirstLine("echo up; sleep 60");
    expect(result).toMatchObject({ exit: null, signal: "SIGTERM", timedOut: false, stopped: true });
  });

  test("is ended when the caller says so although nobody takes what it wrote", async () => {
    const stop = new AbortController();
    const result = await run(
      shell("echo up; sleep 60", {
        signal: stop.signal,
        onOutput: () => {
          stop.abort();
          return new Promise(() => undefined);
        },
      }),
    );
    expect(result.stopped).toBe(true);
  });

  test("is not even started when the caller has said so before", async () => {
    const marker = join(folder, "started");
    const result = await run(shell(`touch ${marker}`, { signal: AbortSignal.abort() }));
    expect(result).toMatchObject({ exit: null, signal: null, stopped: true });
    expect(existsSync(marker)).toBe(false);
  });

  test("has no time limit when none is given, and none that is beyond a timer rings at once", async () => {
    expect(await run(shell("sleep 0.1", { timeoutMs: 2 ** 31 }))).toMatchObject({ exit: 0, timedOut: false });
  });
});

describe("the group of a program ends with it", () => {
  /** For programs that let the grace pass. */
  const runBriefly = createCommandRunner(signalGroup, { graceMs: 300 });

  test("a grandchild that ignores SIGTERM is killed after the grace", async () => {
    // Long enough for the program to end after the first signal, even if it is scheduled late.
    const graceMs = 3_000;
    const { line, result, tookMs } = await stopAfterFirstLine(
      `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.05; done' & wait`,
      (grandchild) => expect(isRunning(Number(grandchild))).toBe(true),
      createCommandRunner(signalGroup, { graceMs }),
    );
    expect(result).toMatchObject({ stopped: true, signal: "SIGTERM" });
    expect(isRunning(Number(line))).toBe(false);
    expect(tookMs).toBeGreaterThanOrEqual(graceMs);
  });

  test("a child that forks to the background and exits takes what it forked along", async () => {
    const result = await run(shell("sleep 60 & echo $!"));
    expect(result).toMatchObject({ exit: 0, signal: null, timedOut: false, stopped: false });
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  test("a background child that ignores SIGTERM and holds the pipes does not hold the result", async () => {
    const result = await runBriefly(
      shell(`sh -c 'trap "" TERM; while :; do sleep 0.05; done' & echo $!; exit 5`),
    );
    expect(result.exit).toBe(5);
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  test("what is stopped by a signal is killed too", async () => {
    const result = await runBriefly(
      shell(
        "sh -c 'kill -STOP $$' & echo $!; until grep -q '^State:.T' /proc/$!/status; do sleep 0.01; done",
      ),
    );
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  test("one that left for a session of its own stays, and its open pipe does not hold the result", async () => {
    const result = await run(
      shell(
        "setsid sh -c 'echo $$ > stray; exec sleep 60' & until [ -s stray ]; do sleep 0.01; done; cat stray",
      ),
    );
    const stray = Number(result.stdout);
    expect(result.exit).toBe(0);
    expect(isRunning(stray)).toBe(true);
    process.kill(stray, "SIGKILL");
  });
});
