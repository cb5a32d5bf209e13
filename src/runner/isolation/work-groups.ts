import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import type { WorkLimits } from "./limits.ts";

/** The control group of a piece of work, while a command uses it. */
export interface UsedGroup {
  /** The start of a command line that joins the group. */
  readonly prefix: readonly string[];
  /** Leaves the group, which ends with its last use. */
  close(): void;
}

/** Control groups (cgroup v2) that limit what all processes of a piece of work use together. */
export interface WorkGroups {
  /** The folder of the groups. */
  readonly folder: string;
  /** Uses the group of the work that has a folder. */
  use(workFolder: string): UsedGroup;
}

export interface WorkGroupsChoice {
  /** The group in which the runner may make others, as the operator names it; "auto" for its own, "none" for none. */
  readonly cgroup: string;
  readonly isRoot: boolean;
  readonly limits: GroupLimits;
  /** The folder of the system's facts about this process; /proc/self when absent. */
  readonly processFolder?: string;
}

type GroupLimits = Pick<WorkLimits, "processes" | "memoryBytes" | "processors">;

/** The group of the runner itself: a group that limits others must not have processes. */
const OWN_GROUP = "chartroom-runner";
const WORK_GROUPS = "chartroom-work";
/** The period of which work gets a part of the processors' time, in microseconds. */
const PERIOD_US = 100_000;

/**
 * Prepares control groups for work where the machine delegates them, and tries one.
 *
 * @returns the groups, or why there are none, for people
 */
export function openWorkGroups(
  choice: WorkGroupsChoice,
): { readonly groups: WorkGroups } | { readonly problem: string } {
  const { cgroup, isRoot, limits, processFolder = "/proc/self" } = choice;
  if (cgroup === "none") return { problem: "--isolation-cgroup none" };
  try {
    const own = ownGroup(processFolder);
    if (cgroup === "auto" && isRoot) {
      return { problem: "a runner of root uses none unless --isolation-cgroup names one" };
    }
    if (cgroup === "auto" && own === undefined) return { problem: "the machine has no cgroup v2" };
    const base = cgroup === "auto" ? (own ?? "") : realpathSync(cgroup);
    const controllers = ["memory", "pids", ...(limits.processors > 0 ? ["cpu"] : [])];
    const found = words(join(base, "cgroup.controllers"));
    const missing = controllers.filter((each) => !found.includes(each));
    if (missing.length > 0) return { problem: `${base} has no ${missing.join(" and no ")}` };
    if (cgroup === "auto" && !isAlone(base)) {
      return { problem: `${base} has other processes than the runner: --isolation-cgroup names one to use` };
    }
    delegate(base, controllers, own);
    const folder = join(base, WORK_GROUPS);
    make(folder);
    delegate(folder, controllers, undefined);
    removeEmpty(folder);
    const groups = new Groups(folder, limits);
    const problem = tryToJoin(groups);
    return problem === undefined ? { groups } : { problem };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** Returns why no process may join a group, for people: making one takes less than that. */
function tryToJoin(groups: WorkGroups): string | undefined {
  const { prefix, close } = groups.use("/trial");
  try {
    const [program = "", ...args] = prefix;
    const { status, stderr, error } = spawnSync(program, [...args, "/bin/sh", "-c", ":"], {
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
    });
    if (status === 0) return undefined;
    return `no process may join a group there: ${error?.message ?? stderr.trim()}`;
  } finally {
    close();
  }
}

/** Returns the folder of the group of this process; undefined where the machine has no cgroup v2. */
function ownGroup(processFolder: string): string | undefined {
  const mounts = readFileSync(join(processFolder, "mountinfo"), "utf8").split("\n");
  const mount = mounts.find((line) => line.includes(" - cgroup2 "))?.split(" ")[4];
  const path = /^0::(.*)$/m.exec(readFileSync(join(processFolder, "cgroup"), "utf8"))?.[1];
  return mount === undefined || path === undefined ? undefined : join(mount, path);
}

function words(file: string): readonly string[] {
  return readFileSync(file, "utf8").trim().split(/\s+/);
}

/**
 * Lets the groups in a folder limit what their processes use.
 *
 * @param own the group of this process, whose processes move into one of their own if it is that of the folder
 */
function delegate(folder: string, controllers: readonly string[], own: string | undefined): void {
  const missing = () => {
    const given = words(join(folder, "cgroup.subtree_control"));
    return controllers.filter((each) => !given.includes(each)).map((each) => `+${each}`);
  };
  if (missing().length === 0) return;
  if (own !== undefined && existsSync(own) && realpathSync(own) === realpathSync(folder))
    moveProcesses(folder);
  writeFileSync(join(folder, "cgroup.subtree_control"), missing().join(" "));
}

/** Returns whether a group has no processes but this one, which may so be moved. */
function isAlone(folder: string): boolean {
  const own = readlinkSync("/proc/self");
  return words(join(folder, "cgroup.procs")).every((id) => id === "" || id === own);
}

/** The rounds in which processes are moved, of which each may have started others meanwhile. */
const MAX_ROUNDS = 20;

function moveProcesses(folder: string): void {
  const target = join(folder, OWN_GROUP);
  make(target);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const ids = words(join(folder, "cgroup.procs")).filter((id) => id !== "");
    if (ids.length === 0) return;
    for (const id of ids) {
      try {
        writeFileSync(join(target, "cgroup.procs"), id);
      } catch (error) {
        // It has ended.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  }
}

function make(folder: string): void {
  if (!existsSync(folder)) mkdirSync(folder);
}

/** Removes the groups that an earlier runner has left; those with processes stay. */
function removeEmpty(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (statSync(join(folder, name)).isDirectory()) remove(join(folder, name));
  }
}

function remove(group: string): void {
  try {
    rmdirSync(group);
  } catch {
    // Its last process is still ending.
  }
}

/** Moves itself into the group of its first argument, and becomes the program of the rest. */
const JOIN = 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"';

class Groups implements WorkGroups {
  readonly folder: string;
  readonly #limits: GroupLimits;
  readonly #uses = new Map<string, number>();
  /** Groups that had processes at their end: the next use of any removes them. */
  readonly #left = new Set<string>();

  constructor(folder: string, limits: GroupLimits) {
    this.folder = folder;
    this.#limits = limits;
  }

  use(workFolder: string): UsedGroup {
    const group = join(this.folder, `work-${basename(workFolder)}`);
    this.#left.delete(group);
    for (const each of this.#left) this.#remove(each);
    make(group);
    const { memoryBytes, processes, processors } = this.#limits;
    writeFileSync(join(group, "memory.max"), String(memoryBytes));
    // Otherwise it would get swap in addition; machines without swap do not have the file.
    if (existsSync(join(group, "memory.swap.max"))) writeFileSync(join(group, "memory.swap.max"), "0");
    writeFileSync(join(group, "pids.max"), String(processes));
    if (processors > 0) writeFileSync(join(group, "cpu.max"), `${processors * PERIOD_US} ${PERIOD_US}`);
    this.#uses.set(group, (this.#uses.get(group) ?? 0) + 1);
    return {
      prefix: ["/bin/sh", "-c", JOIN, "sh", group],
      close: () => this.#leave(group),
    };
  }

  #leave(group: string): void {
    const left = (this.#uses.get(group) ?? 1) - 1;
    if (left > 0) return void this.#uses.set(group, left);
    this.#uses.delete(group);
    try {
      writeFileSync(join(group, "cgroup.kill"), "1");
    } catch {
      // Linux before 5.14: the sandbox has ended its processes.
    }
    this.#remove(group);
  }

  #remove(group: string): void {
    remove(group);
    if (existsSync(group)) this.#left.add(group);
    else this.#left.delete(group);
  }
}
