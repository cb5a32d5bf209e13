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
import { handOverTo, ownedByOthers, shownOf, withNetwork } from "../work-files.ts";
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
  /** Choices that repositories have about theirs. */
  readonly repositoryImages: RepositoryImages;
  readonly filterFile: string;
  readonly view: Pick<SystemView, "readable">;
  readonly limits: WorkLimits;
  /** The id of the user and group of the work, where the runner is root; undefined for the runner's own. */
  readonly user: number | undefined;
  readonly programs: Programs;
  /** A folder of the runner for what it keeps of images; images are not bounded when absent. */
  readonly folder?: string;
  readonly signalGroup: SignalGroup;
  readonly record?: CommandRecord | undefined;
  /** Groups that limit what a piece of work takes together; undefined where nothing does, or only each command is limited. */
  readonly groups?: WorkGroups | undefined;
  /** Runs git apart, where another class can. */
  readonly runGit?: RunGitApart | undefined;
}

/** Returns the class that runs each command of work in a container of its own. */
export function createContainers(options: ContainerOptions): Isolation {
  const { engine, programs, user, limits, runGit, repositoryImages, folder } = options;
  const built =
    folder === undefined ? undefined : new BuiltImages({ engine, folder, most: repositoryImages.most });
  const runner = randomUUID();
  removeWithThisProcess(engine, runner);
  const handOver = handOverTo(programs, user);
  const remove = (name: string) => removeContainer(engine, name);
  return {
    name: "container",
    user,
    keepsRules: false,
    handOver,
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
      await handOver(await ownedByOthers([tree, home, tmp, ...shown], user));
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
      // Commands learn of it, if any is run.
      fetched?.catch(() => undefined);
      const run = createCommandRunner(options.signalGroup, {
        ...(options.record && { record: options.record }),
        enclose: async (command) => {
          await fetched;
          const used = await name?.();
          const commandFolder = await mkdtemp(join(commands, "command-"));
          await writeFile(join(commandFolder, "command"), commandScript(command), { mode: 0o600 });
          await handOver([commandFolder]);
          const group = options.groups?.use(workspace.folder);
          const enclosed = containerCommand(parts, options.signalGroup, {
            name: `chartroom-${randomUUID()}`,
            commandFolder,
            args: (started) => commandArguments(parts, command, { ...started, network: used }),
          });
          return group ? inGroup(enclosed, group) : enclosed;
        },
      });
      // Work can write next to the script of a command, too.
      const limited = withDiskLimits(run, { programs, limits, tmp, folders: [tree, home, commands] });
      return network ? withNetwork(limited, network) : limited;
    },
  };
}

/** Starts an engine's program in a group, in which it leaves the container. */
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

/** Makes the folder of commands' scripts, and removes what a killed runner has left of others: they hold secrets. */
async function openCommandsFolder(workspaceFolder: string, runner: string): Promise<string> {
  const own = `${COMMANDS}${runner}`;
  for (const name of await readdir(workspaceFolder)) {
    if (name.startsWith(COMMANDS) && name !== own) await removeTree(join(workspaceFolder, name));
  }
  await mkdir(join(workspaceFolder, own), { recursive: true, mode: 0o700 });
  return join(workspaceFolder, own);
}

/** Removes a folder that work could write to; what cannot be removed goes with the workspace. */
async function removeTree(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}

interface CommandPlace {
  readonly name: string;
  readonly commandFolder: string;
  args(started: { readonly name: string; readonly commandFolder: string }): readonly string[];
}

/** The exit of an engine's program that could not run a container, or not to its end. */
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
      // The engine's program ends after the container, in which nothing outlives the first process.
      if (!hasEnded()) {
        await runEngine(engine, ["kill", "--signal=TERM", name]);
        for (const until = performance.now() + graceMs; !hasEnded() && performance.now() < until; )
          await delay(20);
      }
      const isForced = !hasEnded();
      if (isForced) await removeContainer(engine, name);
      await endGroup(signalGroup, groupId, graceMs);
      // It may have made the container after all, or lost sight of it.
      if (isForced || client?.exitCode === ENGINE_FAILED) await removeContainer(engine, name);
      hasRun = existsSync(join(commandFolder, STARTED_FILE));
      // Not at once: work may have put any number of files there.
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
 * Waits until its input ends, which it does with the process that has the other end, and removes the containers. A service
 * manager asks it to end together with that process.
 */
const GUARD = `trap '' HUP INT TERM
cat > /dev/null
left=$("$1" ps --all --quiet --filter "label=$2"); [ -z "$left" ] || exec "$1" rm --force $3 $left`;

/** Has all containers of a runner removed when this process ends, in whatever way: nothing else would end them. */
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
