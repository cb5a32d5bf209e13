import { access, constants, lstat, mkdir, mkdtemp, realpath, rm, stat, writeFile } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { type Command, createCommandRunner, type Programs, type RunCommand } from "../process/command.ts";
import type { CommandRecord } from "../process/command-record.ts";
import type { Enclose } from "../process/enclosure.ts";
import type { SignalGroup } from "../process/process-group.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import {
  ARGUMENTS_DESCRIPTOR,
  type SandboxParts,
  sandboxArguments,
  sourcesOf,
} from "./bubblewrap-arguments.ts";
import { findCoveredPaths } from "./covered-paths.ts";
import { withDiskLimits } from "./disk-watch.ts";
import { makeEtcFolder } from "./etc-folder.ts";
import type { GitPlace, Isolation, RunGitApart } from "./isolation.ts";
import type { WorkLimits } from "./limits.ts";
import { type EnterNamespace, openNetworkNamespace, sourcesOfNamespace } from "./network-namespace.ts";
import { NO_RULES } from "./path-rules.ts";
import { sandboxedCommand } from "./sandboxed-command.ts";
import type { SystemView } from "./system-view.ts";
import { isInside, isVisible } from "./system-view.ts";
import { prepareUserEntry, type UserEntry } from "./user-entry.ts";
import { createChown, ownedByOthers, shownOf, withNetwork } from "./work-files.ts";
import type { WorkGroups } from "./work-groups.ts";

/** The paths of the machine's programs that make a sandbox. */
export interface SandboxPrograms {
  readonly bwrap: string;
  readonly prlimit: string;
  readonly choom: string;
  readonly nsenter: string;
  /** Only a runner that is root needs this and the next two programs. */
  readonly setpriv: string;
  readonly unshare: string;
  readonly mount: string;
}

export interface BubblewrapOptions {
  readonly sandboxPrograms: SandboxPrograms;
  /** The file with the system call filter. */
  readonly filterFile: string;
  readonly view: SystemView;
  readonly limits: WorkLimits;
  /** The control groups of the work; undefined when the machine delegates none. */
  readonly groups?: WorkGroups | undefined;
  /** The user and group id of the work if the runner is root; undefined for the runner's own. */
  readonly user: number | undefined;
  /** The folder for files that all sandboxes share. It is created. */
  readonly folder: string;
  /** The runner's own programs. */
  readonly programs: Programs;
  readonly signalGroup: SignalGroup;
  readonly record?: CommandRecord | undefined;
  readonly inheritedDescriptors: ReadonlySet<number>;
}

/**
 * The out-of-memory score: the system kills work first when memory runs out. It is below the maximum of 1,000 so that
 * a program can still raise its own.
 */
const OUT_OF_MEMORY_SCORE = 800;

/** Returns the isolation class that runs work in bubblewrap sandboxes. */
export async function createBubblewrap(options: BubblewrapOptions): Promise<Isolation> {
  const { programs, user, limits } = options;
  const etc = join(options.folder, "etc");
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  const deniedFile = join(options.folder, "denied");
  await rm(deniedFile, { force: true });
  await writeFile(deniedFile, "", { mode: 0 });
  const runner = await lstat(options.folder);
  await makeEtcFolder(programs, etc, { uid: user ?? runner.uid, gid: user ?? runner.gid });
  const chown = createChown(programs, user);
  const runGit: RunGitApart = (place, command) =>
    withGitSandbox({ folder: options.folder, view: options.view, etc, deniedFile, place }, async (parts) => {
      const { workspace, tmp, writable = [] } = parts;
      await chown([tmp, workspace.tree, workspace.home, ...writable]);
      const run = createCommandRunner(options.signalGroup, {
        ...(options.record && { record: options.record }),
        enclose: encloseIn(parts, await entryOf(parts), options, undefined),
      });
      return run(commandInGitSandbox(parts, command));
    });
  const entryOf = async (parts: SandboxParts, more: readonly string[] = []) =>
    user === undefined
      ? AS_RUNNER
      : prepareUserEntry({
          programs: options.sandboxPrograms,
          user,
          folder: options.folder,
          mountsFolder: parts.workspace.folder,
          sources: [...sourcesOf(parts), ...more],
        });
  return {
    name: "bubblewrap",
    user,
    keepsRules: true,
    chown,
    runGit,
    async enter(workspace, readable, { network, rules = NO_RULES } = {}): Promise<RunCommand> {
      const { tree, home } = workspace;
      const tmp = join(workspace.folder, "tmp");
      await mkdir(tmp, { recursive: true, mode: 0o700 });
      const shown = await shownOf(readable, network);
      await chown(await ownedByOthers([tree, home, tmp, ...shown], user));
      const hasNetwork = network !== undefined;
      const place = { view: options.view, workspace, tmp, readable: shown, etc, deniedFile, hasNetwork };
      const parts = { ...place, covers: await findCoveredPaths(programs, place, rules) };
      const entry = await entryOf(parts, network ? sourcesOfNamespace(network) : []);
      const namespace =
        network &&
        openNetworkNamespace({
          programs: options.sandboxPrograms,
          entry,
          view: options.view,
          etc,
          network,
        });
      const run = createCommandRunner(options.signalGroup, {
        ...(options.record && { record: options.record }),
        enclose: encloseIn(parts, entry, options, namespace),
      });
      const limited = withDiskLimits(run, { programs, limits, tmp, folders: [tree, home] });
      return network ? withNetwork(limited, network) : limited;
    },
  };
}

/** The entry of work that runs as the runner's own user. */
const AS_RUNNER: UserEntry = { prefix: [], sourceOf: (path) => path };

function encloseIn(
  parts: SandboxParts,
  entry: UserEntry,
  options: BubblewrapOptions,
  namespace: EnterNamespace | undefined,
): Enclose {
  const { sandboxPrograms, limits, groups } = options;
  return async (command) => {
    const program = await findProgram(command, parts);
    const confined = [
      ...[sandboxPrograms.prlimit, `--nproc=${limits.processes}`, `--data=${limits.memoryBytes}`, "--core=0"],
      ...[sandboxPrograms.choom, "-n", String(OUT_OF_MEMORY_SCORE), "--", program, ...command.args],
    ];
    const sandbox = [sandboxPrograms.bwrap, "--args", String(ARGUMENTS_DESCRIPTOR), "--", ...confined];
    const network = (await namespace?.()) ?? [];
    const group = groups?.use(parts.workspace.folder);
    const [first = "", ...args] = [...(group?.prefix ?? []), ...entry.prefix, ...network, ...sandbox];
    const enclosure = sandboxedCommand({
      ...options,
      program: first,
      args,
      hiddenArgs: sandboxArguments(parts, command, entry.sourceOf),
      hasChannel: command.channel !== undefined,
    });
    return {
      ...enclosure,
      close() {
        enclosure.close();
        group?.close();
      },
    };
  };
}

/**
 * Finds the path of a command's program in the sandbox.
 *
 * @throws WorkFailure command_not_started when the sandbox has no such program
 */
async function findProgram(
  { program, folder, environment: { PATH = "" } }: Command,
  parts: SandboxParts,
): Promise<string> {
  const candidates = program.includes("/")
    ? [resolve(folder, program)]
    : PATH.split(delimiter).map((each) => join(resolve(folder, each), program));
  for (const each of candidates) {
    if (!(await isRunnable(each, parts))) continue;
    if (!(await isCovered(each, parts))) return each;
    throw new WorkFailure(
      "command_not_started",
      `${program} could not be started: the organization's policies deny it`,
    );
  }
  throw new WorkFailure(
    "command_not_started",
    `${program} could not be started: it is no program that isolated work sees, in the system's folders, the workspace or what --isolation-read names`,
  );
}

async function isRunnable(path: string, { view, workspace, tmp, readable }: SandboxParts): Promise<boolean> {
  try {
    // The environment has its own /tmp, not the machine's.
    if (isInside(path, "/tmp")) return await isRunnableFile(join(tmp, path.slice("/tmp".length)));
    const real = await realpath(path);
    const own = [workspace.tree, workspace.home, ...readable];
    const isSeen = isVisible(view, real) || (await isAmong(real, own));
    return isSeen && (await isRunnableFile(real));
  } catch {
    return false;
  }
}

async function isCovered(path: string, { covers = [] }: SandboxParts): Promise<boolean> {
  const real = await realpath(path).catch(() => path);
  return covers.some((each) => typeof each.by === "string" && isInside(real, each.path));
}

async function isAmong(path: string, folders: readonly string[]): Promise<boolean> {
  const reals = await Promise.all(folders.map((each) => realpath(each)));
  return reals.some((each) => isInside(path, each));
}

async function isRunnableFile(path: string): Promise<boolean> {
  await access(path, constants.X_OK);
  return (await stat(path)).isFile();
}

interface GitSandboxOptions {
  /** The folder for files that all sandboxes share. */
  readonly folder: string;
  readonly view: SystemView;
  /** The folder mounted as /etc. */
  readonly etc: string;
  /** An unusable file that is mounted over denied files. */
  readonly deniedFile: string;
  readonly place: GitPlace;
}

/**
 * Makes the parts of a sandbox for one git call and removes them afterwards. The sandbox shows none of the paths that
 * the operator shows to work, and only the call's own place among the machine's other folders.
 */
async function withGitSandbox<T>(
  { folder, view, etc, deniedFile, place }: GitSandboxOptions,
  use: (parts: SandboxParts) => Promise<T>,
): Promise<T> {
  const scratch = await mkdtemp(join(folder, "git-"));
  const [home, tmp, tree] = ["home", "tmp", "tree"].map((name) => join(scratch, name)) as Three;
  try {
    for (const each of [home, tmp, tree]) await mkdir(each, { mode: 0o700 });
    return await use({
      view: { ...view, readable: [] },
      workspace: { folder: scratch, tree, home },
      tmp,
      etc,
      deniedFile,
      // Git uses the machine's network: the runner has checked the address that it connects to.
      hasNetwork: true,
      ...place,
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

type Three = [string, string, string];

/** Adapts a command to a git sandbox. It runs in its HOME unless the sandbox shows the command's folder. */
function commandInGitSandbox(
  { workspace: { home }, readable, writable = [] }: SandboxParts,
  command: Command,
): Command {
  const isSeen = [...readable, ...writable].some((each) => isInside(command.folder, each));
  return {
    ...command,
    folder: isSeen ? command.folder : home,
    environment: { ...command.environment, HOME: home },
  };
}
