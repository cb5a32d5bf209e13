import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { endGroup, parseProcessStat, type SignalGroup } from "./process-group.ts";

/** Remembers the process groups that a runner started. */
export interface CommandRecord {
  add(groupId: number): void;
  remove(groupId: number): void;
}

/** A process, identified so that a later one with the same process id is not mistaken for it. */
interface ProcessIdentity {
  readonly id: number;
  readonly startedAtTicks: string;
}

/** The first line of a file. Earlier releases wrote a file for each group, with nothing else in it. */
interface Head {
  /** The id of the boot; ticks of another boot are not comparable. */
  readonly bootId: string;
  readonly runner: ProcessIdentity;
  /** The first process of the group, in a file of an earlier release. */
  readonly leader?: ProcessIdentity;
}

/** Size in bytes above which the file is rewritten with only the groups that still exist. */
const MAX_BYTES = 65_536;

/**
 * Opens the record in `folder`, which is created. Does nothing on a system without /proc. A runner has one file, to
 * which each group is appended as a line. The end of a group is not recorded, since readers compare the lines with the
 * existing processes. Creating and removing a file for each command would take several times as long.
 */
export async function openCommandRecord(folder: string): Promise<CommandRecord> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const runner = identify("self");
  const bootId = await currentBootId();
  const groups = new Map<number, ProcessIdentity>();
  const file = join(folder, `${runner?.id}-${runner?.startedAtTicks}`);
  let bytes = Number.POSITIVE_INFINITY;
  /** Writes the file atomically: another runner may read the folder now. */
  const writeAll = () => {
    const head = runner && ({ bootId, runner } satisfies Head);
    const text = [JSON.stringify(head), ...[...groups.values()].map(lineOf)].join("");
    const draft = join(folder, `.${runner?.id}`);
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, file);
    bytes = text.length;
  };
  return {
    add(groupId) {
      const leader = identify(String(groupId));
      if (!runner || !leader) return;
      groups.set(groupId, leader);
      if (bytes > MAX_BYTES) return writeAll();
      const line = lineOf(leader);
      appendFileSync(file, line);
      bytes += line.length;
    },
    remove: (groupId) => void groups.delete(groupId),
  };
}

function lineOf({ id, startedAtTicks }: ProcessIdentity): string {
  return `\n${id} ${startedAtTicks}`;
}

/**
 * Kills the groups that a killed runner left behind, but not those of a live runner
 * that uses the same folder. A group whose first process has ended is no longer
 * recognised. Must be called before work is leased.
 *
 * @returns how many groups there were
 */
export async function endOrphanedGroups(folder: string, signalGroup: SignalGroup): Promise<number> {
  let count = 0;
  for (const { file, isOrphaned, groupIds } of await readRecords(folder)) {
    if (!isOrphaned) continue;
    for (const groupId of groupIds) await endGroup(signalGroup, groupId, 0);
    count += groupIds.length;
    await rm(file, { force: true });
  }
  return count;
}

/** The groups in one file whose first process runs. */
interface RecordedGroups {
  readonly file: string;
  /** True if the runner that wrote it no longer runs. */
  readonly isOrphaned: boolean;
  readonly groupIds: readonly number[];
}

/** Returns the groups that runners have recorded in a folder. */
export async function readRecords(folder: string): Promise<readonly RecordedGroups[]> {
  const bootId = await currentBootId();
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => !name.startsWith(".")).map((name) => join(folder, name));
  return Promise.all(
    files.map(async (file) => {
      const record = await readRecord(file);
      // No process of an earlier boot still runs.
      if (record?.head.bootId !== bootId) return { file, isOrphaned: true, groupIds: [] };
      const groupIds = record.leaders.filter(isRunning).map(({ id }) => id);
      return { file, isOrphaned: !isRunning(record.head.runner), groupIds };
    }),
  );
}

/** Parses a record; returns undefined for a file that is not one. */
async function readRecord(
  file: string,
): Promise<{ readonly head: Head; readonly leaders: readonly ProcessIdentity[] } | undefined> {
  try {
    const [first = "", ...lines] = (await readFile(file, "utf8")).split("\n");
    const head: Head = JSON.parse(first);
    const added = lines.map((line) => {
      const [id, startedAtTicks = ""] = line.split(" ");
      return { id: Number(id), startedAtTicks };
    });
    return { head, leaders: head.leader ? [head.leader] : added };
  } catch {
    return undefined;
  }
}

/** Reads synchronously: /proc needs no disk, and a turn of the event loop costs more. */
function identify(processId: string): ProcessIdentity | undefined {
  const stat = statOf(processId);
  return stat && { id: stat.id, startedAtTicks: stat.startedAtTicks };
}

function isRunning({ id, startedAtTicks }: ProcessIdentity): boolean {
  const stat = statOf(String(id));
  return stat?.startedAtTicks === startedAtTicks && !/[ZX]/.test(stat.state);
}

function statOf(processId: string): ReturnType<typeof parseProcessStat> {
  try {
    return parseProcessStat(readFileSync(`/proc/${processId}/stat`, "latin1"));
  } catch {
    return undefined;
  }
}

async function currentBootId(): Promise<string> {
  return readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
}
