import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { endGroup, type SignalGroup, statOf } from "./process-group.ts";

/** Remembers the process groups that a runner started, one file each. */
export interface CommandRecord {
  add(groupId: number): Promise<void>;
  remove(groupId: number): Promise<void>;
}

/** A process, so that another one that got its number later is not taken for it. */
interface Named {
  readonly id: number;
  readonly startedAtTicks: string;
}

interface Entry {
  /** The ticks of another boot mean nothing. */
  readonly bootId: string;
  readonly runner: Named;
  readonly leader: Named;
}

/** Keeps the files in `folder`, which is made. Does nothing on a system without /proc. */
export async function commandRecord(folder: string): Promise<CommandRecord> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const runner = await named("self");
  const bootId = await currentBootId();
  const file = (groupId: number) => join(folder, String(groupId));
  return {
    async add(groupId) {
      const leader = await named(String(groupId));
      if (!runner || !leader) return;
      // Whole or not at all for another runner that reads the folder now.
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
 * Kills the groups that a killed runner left behind; those of a runner that
 * lives, another process over the same folder, stay. A group whose first process
 * has ended is not recognised any more. Call it before work is taken.
 *
 * @returns how many groups there were
 */
export async function endLeftGroups(folder: string, signalGroup: SignalGroup): Promise<number> {
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

/** Undefined for what is no entry. */
async function readEntry(file: string): Promise<Entry | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

async function named(processId: string): Promise<Named | undefined> {
  const stat = await statOf(processId);
  return stat && { id: stat.id, startedAtTicks: stat.startedAtTicks };
}

async function isRunning({ id, startedAtTicks }: Named): Promise<boolean> {
  const stat = await statOf(String(id));
  return stat?.startedAtTicks === startedAtTicks && !/[ZX]/.test(stat.state);
}

async function currentBootId(): Promise<string> {
  return readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
}
