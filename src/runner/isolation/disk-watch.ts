import { statfs } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type Command, commandEnvironment, type Programs, type RunCommand } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { WorkLimits } from "./limits.ts";

/** What to watch of an environment's disk space. */
export interface DiskUse {
  readonly programs: Programs;
  readonly limits: Pick<WorkLimits, "diskBytes" | "tmpBytes" | "freeDiskBytes">;
  /** The folder that is its /tmp. */
  readonly tmp: string;
  /** Its other folders that work can write to. */
  readonly folders: readonly string[];
  /** Interval between checks of the free space, in milliseconds; a second when absent. */
  readonly intervalMs?: number;
}

const INTERVAL_MS = 1_000;
/**
 * Interval between measurements of an environment's size; ten times the duration of the last one if that is longer.
 */
const COUNT_INTERVAL_MS = 5_000;

/**
 * Wraps a function that runs commands to end each one that uses too much disk space.
 *
 * @throws WorkFailure disk_limit_exceeded or disk_full
 */
export function withDiskLimits(run: RunCommand, use: DiskUse): RunCommand {
  return async (command) => {
    const over = new AbortController();
    const exceeded = new AbortController();
    const watching = watch(use, over.signal).then((failure) => {
      if (failure) exceeded.abort(failure);
    });
    try {
      const result = await run({ ...command, signal: either(command.signal, exceeded.signal) });
      if (exceeded.signal.aborted && !command.signal?.aborted) throw exceeded.signal.reason;
      return result;
    } finally {
      over.abort();
      await watching;
    }
  };
}

function either(one: Command["signal"], other: AbortSignal): AbortSignal {
  return one ? AbortSignal.any([one, other]) : other;
}

/** Waits until work uses too much and returns the failure; undefined once the signal is aborted. */
async function watch(use: DiskUse, over: AbortSignal): Promise<WorkFailure | undefined> {
  const { limits, intervalMs = INTERVAL_MS } = use;
  let countAt = performance.now() + Math.min(COUNT_INTERVAL_MS, 5 * intervalMs);
  for (;;) {
    await delay(intervalMs, undefined, { ref: false, signal: over }).catch(() => undefined);
    if (over.aborted) return undefined;
    const freeBytes = await freeBytesOf(use.tmp);
    if (freeBytes < limits.freeDiskBytes) {
      return new WorkFailure(
        "disk_full",
        `the disk of the workspaces has less than ${mib(limits.freeDiskBytes)} MiB of free space: the work was ended`,
      );
    }
    if (performance.now() < countAt) continue;
    const startedAt = performance.now();
    const failure =
      (await exceeded(use, "the files of the environment", use.folders, limits.diskBytes, over)) ??
      (await exceeded(use, "the environment's /tmp", [use.tmp], limits.tmpBytes, over));
    if (failure) return failure;
    const tookMs = performance.now() - startedAt;
    countAt = performance.now() + Math.max(Math.min(COUNT_INTERVAL_MS, 5 * intervalMs), 10 * tookMs);
  }
}

async function exceeded(
  { programs }: DiskUse,
  name: string,
  folders: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): Promise<WorkFailure | undefined> {
  // Work can make paths longer than the system accepts; du avoids them by walking from folder to folder.
  const counted = await programs.run({
    program: "du",
    args: ["--summarize", "--total", "--one-file-system", "--block-size=1", "--", ...folders],
    folder: "/",
    environment: commandEnvironment(programs, "/"),
    keepBytes: 10_000,
    signal,
  });
  const usedBytes = Number(/^(\d+)\ttotal$/m.exec(counted.stdout.toString())?.[1] ?? 0);
  if (usedBytes <= maxBytes) return undefined;
  return new WorkFailure(
    "disk_limit_exceeded",
    `${name} have grown beyond ${mib(maxBytes)} MiB: the work was ended`,
  );
}

async function freeBytesOf(folder: string): Promise<number> {
  // A removed folder uses no space.
  const stat = await statfs(folder).catch(() => undefined);
  return stat ? stat.bavail * stat.bsize : Number.POSITIVE_INFINITY;
}

const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
