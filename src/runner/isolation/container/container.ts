import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createCommandRunner, type Programs } from "../../process/command.ts";
import type { CommandRecord } from "../../process/command-record.ts";
import type { Enclosure } from "../../process/enclosure.ts";
import { endGroup, type SignalGroup } from "../../process/process-group.ts";
import { withDiskLimits } from "../disk-watch.ts";
import type { Isolation, RunGitApart } from "../isolation.ts";
import type { WorkLimits } from "../limits.ts";
import type { SystemView } from "../system-view.ts";
import { createChown, ownedByOthers, shownOf, withNetwork } from "../work-files.ts";
import type { UsedGroup, WorkGroups } from "../work-groups.ts";
import { BuiltImages } from "./built-images.ts";
import {
  type ContainerParts,
  commandArguments,
  commandScript,
  type Engine,
  LABEL,
  requireImageName,
  STARTED_FILE,
} from "./container-arguments.ts";
import { fetchImage, openContainerNetwork } from "./container-network.ts";
import { runEngine } from "./engine.ts";
import { imageChooser, type RepositoryImages } from "./repository-images.ts";

export interface ContainerOptions {
  readonly engine: Engine;
  /** The image of work whose organization names none. */
  readonly image: string;
  /** What repositories may choose about their images. */
  readonly repositoryImages: RepositoryImages;
  readonly filterFile: string;
  readonly view: Pick<SystemView, "readable">;
  readonly limits: WorkLimits;
  /** The user and group id of the work if the runner is root; undefined for the runner's own. */
  readonly user: number | undefined;
  readonly programs: Programs;
  /** The runner's folder for its record of images; the number of images is not limited when absent. */
  readonly folder?: string;
  readonly signalGroup: SignalGroup;
  readonly record?: CommandRecord | undefined;
  /**
   * Groups that limit the total resources of a piece of work; undefined when only each command is limited, or
   * nothing.
   */
  readonly groups?: WorkGroups | undefined;
  /** Runs git apart, if another class can. */
  readonly runGit?: RunGitApart | undefined;
}

/** Returns the isolation class that runs each command of work in its own container. */
export function createContainers(options: ContainerOptions): Isolation {
  const { engine, programs, user, limits, runGit, repositoryImages, folder } = options;
  const built =
    folder === undefined ? undefined : new BuiltImages({ engine, folder, most: repositoryImages.most });
  const runner = randomUUID();
  removeWithThisProcess(engine, runner);
  const chown = createChown(programs, user);
  const remove = (name: string) => removeContainer(engine, name);
  return {
    name: "container",
    user,
    keepsRules: false,
    chown,
    ...(runGit && { runGit }),
    imageOf: imageChooser(repositoryImages, { engine, programs, built }),
    async enter(workspace, readable, { network, image } = {}) {
      if (image) requireImageName(image);
      const { tree, home } = workspace;
      const tmp = join(workspace.folder, "tmp");
      await mkdir(tmp, { recursive: true, mode: 0o700 });
      const commands = await openCommandsFolder(workspace.folder, runner);
      const shown = await shownOf(readable, network);
      const { uid, gid } = await lstat(workspace.folder);
      await chown(await ownedByOthers([tree, home, tmp, ...shown], user));
      const parts: ContainerParts = {
        ...options,
        image: image || options.image,
        workspace,
        tmp,
        readable: shown,
        user: user === undefined ? `${uid}:${gid}` : `${user}:${user}`,
        runner,
      };
      const name = network && openContainerNetwork({ ...parts, image: options.image }, network, remove);
      const fetched = image && network ? fetchImage(engine, image, network.ended) : undefined;
      // A failure is reported by the first command that runs.
      fetched?.catch(() => undefined);
      const run = createCommandRunner(options.signalGroup, {
        ...(options.record && { record: options.record }),
        enclose: async (command) => {
          await fetched;
          const used = await name?.();
          const commandFolder = await mkdtemp(join(commands, "command-"));
          await writeFile(join(commandFolder, "command"), commandScript(command), { mode: 0o600 });
          await chown([commandFolder]);
          const group = options.groups?.use(workspace.folder);
          const enclosed = containerCommand(parts, options.signalGroup, {
            name: `chartroom-${randomUUID()}`,
            commandFolder,
            args: (started) => commandArguments(parts, command, { ...started, network: used }),
          });
          return group ? inGroup(enclosed, group) : enclosed;
        },
      });
      // Work can also write next to a command's script.
      const limited = withDiskLimits(run, { programs, limits, tmp, folders: [tree, home, commands] });
      return network ? withNetwork(limited, network) : limited;
    },
  };
}

/** Starts the engine's program in a group, which its container then stays in. */
function inGroup(enclosure: Enclosure, { prefix, close }: UsedGroup): Enclosure {
  const [program = "", ...args] = [...prefix, enclosure.program];
  return {
    ...enclosure,
    program,
    args: [...args, ...enclosure.args],
    close() {
      enclosure.close();
      close();
    },
  };
}

const COMMANDS = "commands-";

/** Makes the folder for command scripts, and removes the folders of killed runners because scripts hold secrets. */
async function openCommandsFolder(workspaceFolder: string, runner: string): Promise<string> {
  const own = `${COMMANDS}${runner}`;
  for (const name of await readdir(workspaceFolder)) {
    if (name.startsWith(COMMANDS) && name !== own) await removeTree(join(workspaceFolder, name));
  }
  await mkdir(join(workspaceFolder, own), { recursive: true, mode: 0o700 });
  return join(workspaceFolder, own);
}

/** Removes a folder that work could write to. Anything left is removed with the workspace. */
async function removeTree(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}

interface CommandPlace {
  readonly name: string;
  readonly commandFolder: string;
  args(started: { readonly name: string; readonly commandFolder: string }): readonly string[];
}

/** The engine's exit code when it could not run a container, or not to its end. */
const ENGINE_FAILED = 125;

function containerCommand(
  { engine }: ContainerParts,
  signalGroup: SignalGroup,
  { name, commandFolder, args }: CommandPlace,
): Enclosure {
  let client: ChildProcess | undefined;
  let hasRun = false;
  const hasEnded = () => client?.exitCode !== null && client?.exitCode !== undefined;
  return {
    program: engine.file,
    args: args({ name, commandFolder }),
    environment: engine.environment,
    descriptors: [],
    started(child) {
      client = child;
    },
    async end(groupId, graceMs) {
      // The engine's program ends after the container. No process in the container outlives the first one.
      if (!hasEnded()) {
        await runEngine(engine, ["kill", "--signal=TERM", name]);
        for (const until = performance.now() + graceMs; !hasEnded() && performance.now() < until; )
          await delay(20);
      }
      const isForced = !hasEnded();
      if (isForced) await removeContainer(engine, name);
      await endGroup(signalGroup, groupId, graceMs);
      // The engine may have created the container after all, or lost track of it.
      if (isForced || client?.exitCode === ENGINE_FAILED) await removeContainer(engine, name);
      hasRun = existsSync(join(commandFolder, STARTED_FILE));
      // Asynchronously: work may have created any number of files there.
      await removeTree(commandFolder);
    },
    async problem() {
      if (hasRun) return undefined;
      return "no container could be made for it, or its image has no such program";
    },
    close() {
      if (client === undefined) rmSync(commandFolder, { recursive: true, force: true });
    },
  };
}

async function removeContainer(engine: Engine, name: string): Promise<void> {
  await runEngine(engine, ["rm", "--force", ...(engine.name === "podman" ? ["--time=0"] : []), name]);
}

/**
 * Waits until its input ends, which happens when the runner's process ends, and removes the containers. Ignores the
 * signals of a service manager that stops both together.
 */
const GUARD = `trap '' HUP INT TERM
cat > /dev/null
left=$("$1" ps --all --quiet --filter "label=$2"); [ -z "$left" ] || exec "$1" rm --force $3 $left`;

/** Starts a guard that removes all of a runner's containers however this process ends: nothing else would. */
function removeWithThisProcess(engine: Engine, runner: string): void {
  const { name, file } = engine;
  const args = ["-c", GUARD, "sh", file, `${LABEL}=${runner}`, name === "podman" ? "--time=0" : ""];
  const guard = spawn("/bin/sh", args, {
    cwd: "/",
    env: engine.environment,
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.on("error", () => undefined);
  guard.stdin.on("error", () => undefined);
  (guard.stdin as unknown as { unref(): void }).unref();
  guard.unref();
}
