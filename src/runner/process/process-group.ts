import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/**
 * Sends a signal to every process of a group; 0 only checks whether one exists. Throws like the system call, with the
 * code ESRCH when there is none.
 */
export type SignalGroup = (groupId: number, signal: NodeJS.Signals | 0) => void;

/** The time that a program has to exit by itself before it is killed. */
export const GRACE_MS = 5_000;

/**
 * Time to wait after SIGKILL. It cannot be ignored: a process that still exists
 * after this hangs in the kernel and executes nothing.
 */
const MAX_KILL_MS = 2_000;

const MAX_POLL_MS = 100;

/**
 * Ends a whole process group: sends SIGTERM, and SIGKILL to the rest after `graceMs`. Resolves when none of its
 * processes run. Does not reach a process that started its own group.
 *
 * @param askedGroupId the group that gets SIGTERM; the other group ends with it
 */
export async function endGroup(
  signalGroup: SignalGroup,
  groupId: number,
  graceMs: number,
  askedGroupId = groupId,
): Promise<void> {
  if (await isGone(signalGroup, groupId, 0)) return;
  signalReaches(signalGroup, askedGroupId, "SIGTERM");
  if (await isGone(signalGroup, groupId, graceMs)) return;
  signalReaches(signalGroup, groupId, "SIGKILL");
  await isGone(signalGroup, groupId, MAX_KILL_MS);
}

/** Waits, up to a limit, for the end of a group by polling: the system notifies only the parent of each process. */
async function isGone(signalGroup: SignalGroup, groupId: number, waitMs: number): Promise<boolean> {
  const until = performance.now() + waitMs;
  for (let pollMs = 5; ; pollMs = Math.min(pollMs * 2, MAX_POLL_MS)) {
    if (!signalReaches(signalGroup, groupId, 0) || !(await hasRunning(groupId))) return true;
    const leftMs = until - performance.now();
    if (leftMs <= 0) return false;
    await delay(Math.min(pollMs, leftMs));
  }
}

function signalReaches(signalGroup: SignalGroup, groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    signalGroup(groupId, signal);
    return true;
  } catch (error) {
    // EPERM: a process of another user exists.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/**
 * Returns whether the group has a process that is not a zombie. In a container
 * whose first process reaps late or never, zombies remain. Returns true when /proc
 * is not available.
 */
async function hasRunning(groupId: number): Promise<boolean> {
  const names = await readdir("/proc").catch(() => []);
  const processes = names.filter((name) => /^\d+$/.test(name));
  if (processes.length === 0) return true;
  const running = await Promise.all(processes.map((name) => readProcessStat(name)));
  return running.some((stat) => stat !== undefined && stat.groupId === groupId && !/[ZX]/.test(stat.state));
}

/** The state of a process as the system reports it. */
export interface ProcessStat {
  /** The state as one letter; Z and X are dead. */
  readonly state: string;
  readonly groupId: number;
  /** The start in ticks since the boot: together with the id it identifies one process. */
  readonly startedAtTicks: string;
}

/**
 * Reads the state of a process; undefined when it does not exist, or without
 * /proc. `processId` may be "self".
 */
export async function readProcessStat(processId: string): Promise<IdentifiedStat | undefined> {
  return parseProcessStat(await readFile(`/proc/${processId}/stat`, "latin1").catch(() => ""));
}

type IdentifiedStat = ProcessStat & { readonly id: number };

/** Parses the text in which the system reports the state of a process; undefined for any other text. */
export function parseProcessStat(text: string): IdentifiedStat | undefined {
  // The name is in parentheses and may hold any characters, including spaces and parentheses.
  const [, id, rest] = /^(\d+) \([\s\S]*\) ([^)]*)$/.exec(text) ?? [];
  const fields = rest?.trim().split(" ") ?? [];
  // By proc(5) these are the fields 3, 5 and 22.
  const [state, , group] = fields;
  const startedAtTicks = fields[19];
  if (id === undefined || state === undefined || startedAtTicks === undefined) return undefined;
  return { id: Number(id), state, groupId: Number(group), startedAtTicks };
}
