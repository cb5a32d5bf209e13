import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { endGroup, readProcessStat, type SignalGroup } from "./process-group.ts";

/** Remembers the process groups that a runner started, one file each. */
export interface CommandRecord {
  add(groupId: number): Promise<void>;
  remove(groupId: number): Promise<void>;
}

/** A process, named so that a later one with the same number is not mistaken for it. */
interface ProcessIdentity {
  readonly id: number;
  readonly startedAtTicks: string;
}

interface Entry {
  /** The id of the boot; ticks of another boot are not comparable. */
  readonly bootId: string;
  readonly runner: ProcessIdentity;
  readonly leader: ProcessIdentity;
}

/** Opens the record in `folder`, which is created. Does nothing on a system without /proc. */
export async function openCommandRecord(folder: string): Promise<CommandRecord> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const runner = await identify("self");
  const bootId = await currentBootId();
  const file = (groupId: number) => join(folder, String(groupId));
  return {
    async add(groupId) {
      const leader = await identify(String(groupId));
      if (!runner || !leader) return;
      // Written atomically for another runner that reads the folder now.
      const draft = join(folder, `.${groupId}`);
      await writeFile(draft, JSON.stringify({ bootId, runner, leader } satisfies Entry));
      await rename(draft, file(groupId));
    },
    async remove(groupId) {
      await rm(file(groupId), { force: true });
    },
  };
}

/**
 * Kills the groups that a killed runner left behind; those of a live runner,
 * another process over the same folder, stay. A group whose first process has
 * ended is not recognised any more. Call it before work is taken.
 *
 * @returns how many groups there were
 */
export async function endOrphanedGroups(folder: string, signalGroup: SignalGroup): Promise<number> {
  const files = await readdir(folder).catch(() => []);
  const bootId = await currentBootId();
  let count = 0;
  for (const file of files.filter((name) => !name.startsWith("."))) {
    const entry = await readEntry(join(folder, file));
    if (entry?.bootId === bootId && (await isRunning(entry.runner))) continue;
    if (entry?.bootId === bootId && (await isRunning(entry.leader))) {
      await endGroup(signalGroup, entry.leader.id, 0);
      count++;
    }
    await rm(join(folder, file), { force: true });
  }
  return count;
}

/** Returns undefined for a file that is no entry. */
async function readEntry(file: string): Promise<Entry | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

async function identify(processId: string): Promise<ProcessIdentity | undefined> {
  const stat = await readProcessStat(processId);
  return stat && { id: stat.id, startedAtTicks: stat.startedAtTicks };
}

async function isRunning({ id, startedAtTicks }: ProcessIdentity): Promise<boolean> {
  const stat = await readProcessStat(String(id));
  return stat?.startedAtTicks === startedAtTicks && !/[ZX]/.test(stat.state);
}

async function currentBootId(): Promise<string> {
  return readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
}
