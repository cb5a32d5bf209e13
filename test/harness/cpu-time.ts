import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Returns the milliseconds of CPU time that the work takes; time in which the thread is not
 * scheduled does not count.
 */
export function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** Returns the milliseconds of CPU time that the thread of a process's event loop has taken. */
export function mainThreadMs({ pid }: Pick<ChildProcess, "pid">): number {
  const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, "utf8");
  // Behind the name, which may hold blanks: user and system time in ticks of 10 ms.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
