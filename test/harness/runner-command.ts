import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "@jest/globals";
import {
  type Command,
  type CommandResult,
  commandEnvironment,
  createCommandRunner,
} from "../../src/runner/process/command.ts";
import type { SignalGroup } from "../../src/runner/process/process-group.ts";

let folder = "";

/** Creates the folder in which the commands of a test file run, and removes it after the tests. */
export function commandFolder(): string {
  const created = mkdtempSync(join(tmpdir(), "chartroom-command-"));
  afterAll(() => rmSync(created, { recursive: true, force: true }));
  folder = created;
  return created;
}

export const signalGroup: SignalGroup = (groupId, signal) => process.kill(-groupId, signal);
export const path = process.env.PATH ?? "";
/** Programs get more time to end after SIGTERM than a busy machine may take to schedule them. */
export const run = createCommandRunner(signalGroup, { graceMs: 30_000 });

export function shell(command: string, more: Partial<Command> = {}): Command {
  return {
    program: "sh",
    args: ["-c", command],
    folder,
    environment: commandEnvironment({ path }, folder),
    keepBytes: 1_000,
    ...more,
  };
}

/** Runs a command with `runs` and stops it after its first line of output. */
export async function stopAfterFirstLine(
  command: string,
  look: (line: string) => void = () => undefined,
  runs = run,
): Promise<{ readonly line: string; readonly result: CommandResult; readonly tookMs: number }> {
  const stop = new AbortController();
  let text = "";
  let stoppedAt = 0;
  const result = await runs(
    shell(command, {
      signal: stop.signal,
      onOutput: (bytes) => {
        text += bytes;
        if (!text.includes("\n") || stop.signal.aborted) return;
        look(text);
        stoppedAt = performance.now();
        stop.abort();
      },
    }),
  );
  return { line: text.split("\n")[0] ?? "", result, tookMs: performance.now() - stoppedAt };
}

export const isRunning = (pid: number) => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};
