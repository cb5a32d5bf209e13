import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/**
 * Sends a signal to every process of a group; 0 only asks whether there is one.
 * Throws as the system does, with the code ESRCH when there is none.
 */
export type SignalGroup = (groupId: number, signal: NodeJS.Signals | 0) => void;

/** What a program gets to end in an orderly way before it is killed. */
export const GRACE_MS = 5_000;

/** SIGKILL cannot be refused; what is still there after this hangs in the kernel and runs nothing. */
const KILLED_MS = 2_000;

const LONGEST_POLL_MS = 100;

/**
 * Ends a process group whole: SIGTERM, and SIGKILL for what is left after
 * `graceMs`. Resolves when no process of it runs; at once when none does. A
 * process that made a group of its own is not reached.
 */
export async function endGroup(signalGroup: SignalGroup, groupId: number, graceMs: number): Promise<void> {
  if (await isGone(signalGroup, groupId, 0)) return;
  reaches(signalGroup, groupId, "SIGTERM");
  if (await isGone(signalGroup, groupId, graceMs)) return;
  reaches(signalGroup, groupId, "SIGKILL");
  await isGone(signalGroup, groupId, KILLED_MS);
}

/** Waits at most so long for the end of a group. The system tells nobody of it but the parent of each process. */
async function isGone(signalGroup: SignalGroup, groupId: number, waitMs: number): Promise<boolean> {
  const until = performance.now() + waitMs;
  for (let pollMs = 5; ; pollMs = Math.min(pollMs * 2, LONGEST_POLL_MS)) {
    if (!reaches(signalGroup, groupId, 0) || !(await hasRunning(groupId))) return true;
    const leftMs = until - performance.now();
    if (leftMs <= 0) return false;
    await delay(Math.min(pollMs, leftMs));
  }
}

function reaches(signalGroup: SignalGroup, groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    signalGroup(groupId, signal);
    return true;
  } catch (error) {
    // EPERM: there is a process, of another user.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/**
 * Whether a process of the group is more than a dead one that nobody has asked
 * after: in a container whose first process asks late or never, those stay.
 * True where /proc does not say.
 */
async function hasRunning(groupId: number): Promise<boolean> {
  const names = await readdir("/proc").catch(() => []);
  const processes = names.filter((name) => /^\d+$/.test(name));
  if (processes.length === 0) return true;
  const running = await Promise.all(processes.map((name) => statOf(name)));
  return running.some((stat) => stat !== undefined && stat.groupId === groupId && !/[ZX]/.test(stat.state));
}

/** What the system says of a process. */
export interface ProcessStat {
  /** One letter; Z and X are dead. */
  readonly state: string;
  readonly groupId: number;
  /** When it started, in ticks since the machine did: with the id it names one process for good. */
  readonly startedAtTicks: string;
}

/** Undefined when there is no such process, or no /proc. `processId` may be "self". */
export async function statOf(
  processId: string,
): Promise<(ProcessStat & { readonly id: number }) | undefined> {
  const text = await readFile(`/proc/${processId}/stat`, "latin1").catch(() => "");
  // The name stands in parentheses and may hold anything, also spaces and more of them.
  const [, id, rest] = /^(\d+) \([\s\S]*\) ([^)]*)$/.exec(text) ?? [];
  const fields = rest?.trim().split(" ") ?? [];
  // By proc(5) these are the fields 3, 5 and 22.
  const [state, , group] = fields;
  const startedAtTicks = fields[19];
  if (id === undefined || state === undefined || startedAtTicks === undefined) return undefined;
  return { id: Number(id), state, groupId: Number(group), startedAtTicks };
}
