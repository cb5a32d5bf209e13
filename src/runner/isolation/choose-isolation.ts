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
  /** Paths that work may read in addition to the system's, as the operator names them. */
  readonly readable: readonly string[];
  /** Files and folders that no work may see: those of the server and of the runner. */
  readonly hidden: readonly string[];
  /** The image of work in containers whose organization names none; empty for no containers. */
  readonly image: string;
  /** Choices that repositories have about the images of their work; absent for none. */
  readonly repositoryImages?: RepositoryImages;
  /** The user of the work where the runner is root. */
  readonly user: number;
  readonly isRoot: boolean;
  readonly limits: WorkLimits;
  /** The control group that the operator names for work; "auto" or "none". */
  readonly cgroup: string;
  /** The variables of the runner; none when absent. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The PATH of all programs and commands. */
  readonly path: string;
  readonly signalGroup: SignalGroup;
  readonly log: Log;
  /** The folders of the programs that sandboxes are made with; those of the system when absent. */
  readonly programFolders?: readonly string[];
}

/** The needs of a class of the runner that uses it. */
export interface IsolationContext {
  /** The runner's own programs. */
  readonly programs: Programs;
  readonly record?: CommandRecord;
  /** A folder of the runner for the class; it need not exist. */
  readonly folder: string;
}

/** A class of isolation that works on this machine. */
export interface ChosenIsolation {
  readonly name: IsolationName;
  create(context: IsolationContext): Promise<Isolation>;
}

/**
 * Chooses the class of isolation by trying it, and logs which and why.
 *
 * @throws RunnerError where the class does not work that the operator demands, and where a runner that is root would
 *   isolate nothing although nobody said so
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
        // Git that reaches a remote is kept apart by it, where it works.
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
      `the runner is root, and nothing would keep its work in, since ${why}. Install one, or start as another user; --isolation none lets workflows and agents do anything on this machine`,
    );
  }
  log.warn({ isolation: "none", why, readable: choice.hidden }, NOTHING);
  return NONE;
}

/** @throws RunnerError where the operator demands limits that only a control group keeps, and there is none */
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
  "the runner runs as root: every command of a workflow and every agent may do anything on this machine; start it as a user of its own that holds nothing else";
