import { execFileSync } from "node:child_process";
import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { temporaryFolder } from "../test/harness/server.ts";
import { percentile } from "./figures.ts";

/** Linux counts time in hundredths of a second. */
const TICK_MS = 10;

/** Returns the processor time of a process and of the children that it waited for, in milliseconds. Linux only. */
export function processorMs(processId: number | undefined): number {
  const stat = readFileSync(`/proc/${processId}/stat`, "utf8");
  // The name in brackets may contain any characters; utime to cstime are the 12th to 15th fields after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/**
 * Returns the processor time of a process's threads, in milliseconds with fractions. It is
 * more precise than processorMs, but excludes threads that have ended. Linux only.
 */
export function threadsMs(processId: number | undefined): number {
  const folder = `/proc/${processId}/task`;
  const nanoseconds = readdirSync(folder).map((thread) =>
    Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e6;
}

/** Returns the processor time of all processes together, in milliseconds. Linux only. */
export function allProcessorsMs(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync("/proc/stat", "utf8").split(/\s+/);
  return [user, nice, system, irq, softirq].reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** Returns lines that describe the machine. */
export function machineLines(): string[] {
  const [processor] = cpus();
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { encoding: "utf8" }).trim();
  const commit = run("git", "rev-parse", "--short", "HEAD");
  const changed = run("git", "status", "--porcelain", "--untracked-files=no", "src", "gen", "bench") !== "";
  const sqlite = new Database(":memory:").prepare("select sqlite_version() as version").get();
  return [
    `Machine: ${cpus().length} processors (${processor?.model}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}`,
    `Versions: Node ${process.versions.node}, SQLite ${(sqlite as { version: string }).version}, ${run("git", "--version")}`,
    `Disk: 4 KiB are written and forced in ${forcedWriteMs().toPrecision(2)} ms (median of 200), where the data folders are`,
    `Commit: ${commit}${changed ? ", with changes that were not committed" : ""}`,
  ];
}

function forcedWriteMs(): number {
  const file = openSync(join(temporaryFolder(), "forced"), "w");
  const block = Buffer.alloc(4_096, 1);
  const times = Array.from({ length: 200 }, () => {
    const began = performance.now();
    writeSync(file, block);
    fdatasyncSync(file);
    return performance.now() - began;
  });
  closeSync(file);
  return percentile(times, 50);
}

/** Returns the average number of processes that ran or waited to run over the last minute. */
export function loadOfLastMinute(): number {
  return loadavg()[0] ?? 0;
}
