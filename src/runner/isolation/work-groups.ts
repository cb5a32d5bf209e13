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
  /** Leaves the group; its last user ends it. */
  close(): void;
}

/** Control groups (cgroup v2) that limit the total resources of a piece of work. */
export interface WorkGroups {
  /** The parent folder of the groups. */
  readonly folder: string;
  /** Starts using the group of the work with this folder. */
  use(workFolder: string): UsedGroup;
}

export interface WorkGroupsChoice {
  /**
   * The operator's parent group, in which the runner may make others; "auto" for the runner's own, "none" for no
   * groups.
   */
  readonly cgroup: string;
  readonly isRoot: boolean;
  readonly limits: GroupLimits;
  /** The folder with this process's information; /proc/self when absent. */
  readonly processFolder?: string;
}

type GroupLimits = Pick<WorkLimits, "processes" | "memoryBytes" | "processors">;

/** The group of the runner itself: a group that limits child groups must not contain processes. */
const OWN_GROUP = "chartroom-runner";
const WORK_GROUPS = "chartroom-work";
/** The scheduling period for the limit of processor time, in microseconds. */
const PERIOD_US = 100_000;

/**
 * Prepares control groups for work if the machine delegates them, and tries one.
 *
 * @returns the groups, or why there are none, as a message for people
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

/** Returns why no process may join a group, as a message for people. Joining needs more rights than creating one. */
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

/** Returns the folder of this process's group; undefined when the machine has no cgroup v2. */
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
 * @param own this process's group; if it is the folder's, its processes move into a group of their own first
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

/** Returns whether this process is alone in a group and may therefore be moved. */
function isAlone(folder: string): boolean {
  const own = readlinkSync("/proc/self");
  return words(join(folder, "cgroup.procs")).every((id) => id === "" || id === own);
}

/** Maximum rounds of moving processes, since processes may start others during each round. */
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
        // The process has ended.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  }
}

function make(folder: string): void {
  if (!existsSync(folder)) mkdirSync(folder);
}

/** Removes groups left by an earlier runner, except those with processes. */
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

/** Moves the shell into the group in its first argument, then runs the remaining arguments as a program. */
const JOIN = 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"';

class Groups implements WorkGroups {
  readonly folder: string;
  readonly #limits: GroupLimits;
  readonly #uses = new Map<string, number>();
  /** Groups that still had processes when their last use ended; the next use of another group removes them. */
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
    // Otherwise work could also use swap. Machines without swap do not have the file.
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
      // Linux before 5.14 has no cgroup.kill; the sandbox has ended its processes.
    }
    this.#remove(group);
  }

  #remove(group: string): void {
    remove(group);
    if (existsSync(group)) this.#left.add(group);
    else this.#left.delete(group);
  }
}
