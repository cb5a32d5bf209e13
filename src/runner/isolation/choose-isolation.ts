import type { Log } from "../../log.ts";
import type { Programs } from "../process/command.ts";
import type { CommandRecord } from "../process/command-record.ts";
import type { SignalGroup } from "../process/process-group.ts";
import { RunnerError } from "../protocol/runner-error.ts";
import { createBubblewrap } from "./bubblewrap.ts";
import { tryBubblewrap } from "./bubblewrap-trial.ts";
import { createContainers } from "./container/container.ts";
import { tryContainers } from "./container/container-trial.ts";
import { TRIAL_LIMITS } from "./container/limits-trial.ts";
import type { RepositoryImages } from "./container/repository-images.ts";
import { PROGRAM_FOLDERS } from "./find-executable.ts";
import { type Isolation, type IsolationName, noIsolation } from "./isolation.ts";
import type { WorkLimits } from "./limits.ts";
import { readSystemView } from "./system-view.ts";
import { openWorkGroups } from "./work-groups.ts";

export interface IsolationChoice {
  readonly isolation: "auto" | IsolationName;
  /** Paths besides the system's that the operator lets work read. */
  readonly readable: readonly string[];
  /** Files and folders of the server and the runner that no work may see. */
  readonly hidden: readonly string[];
  /** The container image of work whose organization names none; empty for no containers. */
  readonly image: string;
  /** What repositories may choose about the images of their work; nothing when absent. */
  readonly repositoryImages?: RepositoryImages;
  /** The user of the work if the runner is root. */
  readonly user: number;
  readonly isRoot: boolean;
  readonly limits: WorkLimits;
  /** The operator's control group for work, "auto" or "none". */
  readonly cgroup: string;
  /** The runner's environment variables; none when absent. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The PATH of all programs and commands. */
  readonly path: string;
  readonly signalGroup: SignalGroup;
  readonly log: Log;
  /** The folders to search for the programs that make sandboxes; the system's when absent. */
  readonly programFolders?: readonly string[];
}

/** What an isolation class needs from the runner that uses it. */
export interface IsolationContext {
  /** The runner's own programs. */
  readonly programs: Programs;
  readonly record?: CommandRecord;
  /** The runner's folder for the class; it need not exist. */
  readonly folder: string;
}

/** An isolation class that works on this machine. */
export interface ChosenIsolation {
  readonly name: IsolationName;
  create(context: IsolationContext): Promise<Isolation>;
}

/**
 * Chooses the isolation class by trying it, and logs the choice and the reason.
 *
 * @throws RunnerError when the class that the operator demands does not work, and when a runner that is root would
 *   isolate nothing without `--isolation none`
 */
export async function chooseIsolation(choice: IsolationChoice): Promise<ChosenIsolation> {
  const { isolation: wanted, isRoot, log } = choice;
  if (wanted === "none") {
    log.warn({ isolation: "none", readable: choice.hidden }, isRoot ? AS_ROOT : NOTHING);
    return NONE;
  }
  const view = readSystemView(choice);
  const user = isRoot ? choice.user : undefined;
  const opened = openWorkGroups(choice);
  const groups = "groups" in opened ? opened.groups : undefined;
  const bubblewrap = await tryBubblewrap({ ...choice, view, user, groups });
  const facts = user === undefined ? {} : { user };
  if ("parts" in bubblewrap && wanted !== "container") {
    requireGroups(choice, opened);
    const limits = "groups" in opened ? { cgroup: opened.groups.folder } : { noCgroup: opened.problem };
    log.info({ isolation: "bubblewrap", ...facts, ...limits }, "work is isolated by bubblewrap");
    return { name: "bubblewrap", create: (context) => createBubblewrap({ ...bubblewrap.parts, ...context }) };
  }
  const whyNot = "parts" in bubblewrap ? "" : `bubblewrap does not work here: ${bubblewrap.problem}`;
  if (wanted === "bubblewrap") throw new RunnerError(`--isolation bubblewrap: ${whyNot}`);
  const programFolders = choice.programFolders ?? PROGRAM_FOLDERS;
  const trial = groups && openWorkGroups({ ...choice, limits: TRIAL_LIMITS });
  const containers = await tryContainers({
    env: {},
    repositoryImages: NO_IMAGES,
    ...choice,
    view,
    user,
    programFolders,
    groups,
    trialGroups: trial && "groups" in trial ? trial.groups : undefined,
  });
  if ("parts" in containers) {
    const { engine, groups: used } = containers.parts;
    if (isNamed(choice) && !used) throw new RunnerError(unlimited("--isolation-cgroup", opened));
    const { name, isRootless } = engine;
    const hasCgroups = engine.hasGroups || used !== undefined;
    const limits = { engine: name, isRootless, hasCgroups, ...(used && { cgroup: used.folder }) };
    log.info(
      { isolation: "container", ...facts, ...limits, ...(whyNot && { whyNot }) },
      "work is isolated by containers",
    );
    return {
      name: "container",
      async create(context) {
        // If bubblewrap works, it isolates git calls that reach a remote.
        const { runGit } =
          "parts" in bubblewrap ? await createBubblewrap({ ...bubblewrap.parts, ...context }) : {};
        return createContainers({ ...containers.parts, ...context, runGit });
      },
    };
  }
  const noContainers = `containers do not work here: ${containers.problem}`;
  if (wanted === "container") throw new RunnerError(`--isolation container: ${noContainers}`);
  const why = `${whyNot}, and ${noContainers}`;
  if (isRoot) {
    throw new RunnerError(
      `a runner that is root starts only with isolation, but ${whyNot}; and ${noContainers}. Make one of them work, or start as another user. With --isolation none, workflows and agents can do anything on this machine`,
    );
  }
  log.warn({ isolation: "none", why, readable: choice.hidden }, NOTHING);
  return NONE;
}

/** @throws RunnerError when the operator demands limits that need a control group, and there is none */
function requireGroups(choice: IsolationChoice, opened: OpenedGroups): void {
  if ("groups" in opened) return;
  if (isNamed(choice)) throw new RunnerError(unlimited("--isolation-cgroup", opened));
  if (choice.limits.processors > 0) throw new RunnerError(unlimited("--isolation-cpus", opened));
}

type OpenedGroups = ReturnType<typeof openWorkGroups>;

function isNamed({ cgroup }: IsolationChoice): boolean {
  return cgroup !== "auto" && cgroup !== "none";
}

function unlimited(setting: string, opened: OpenedGroups): string {
  const why = "groups" in opened ? "the engine's containers do not stay in it" : opened.problem;
  return `${setting}: no control group limits the work here: ${why}`;
}

const NO_IMAGES: RepositoryImages = { allowed: [], cli: "", most: 0 };

const NONE: ChosenIsolation = { name: "none", create: async ({ programs }) => noIsolation(programs.run) };

const NOTHING =
  "nothing isolates the work: every command of a workflow and every agent can read and change what this user can, among it the data, the keys, other work, and the processes of this user";
const AS_ROOT =
  "the runner runs as root: every command of a workflow and every agent may do anything on this machine; start it as a user that owns nothing else";
