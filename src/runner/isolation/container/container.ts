import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { lstat, mkdir, mkdtemp, writeFile } from "node:fs/promises";
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
import { givenTo, ownedByOthers, shownOf, withNetwork } from "../work-files.ts";
import {
  type ContainerParts,
  commandArguments,
  commandScript,
  type Engine,
  LABEL,
  STARTED_FILE,
} from "./container-arguments.ts";
import { openContainerNetwork } from "./container-network.ts";

export interface ContainerOptions {
  readonly engine: Engine;
  /** The image of work whose organization names none. */
  readonly image: string;
  readonly filterFile: string;
  readonly view: Pick<SystemView, "readable">;
  readonly limits: WorkLimits;
  /** The id of the user and group of the work, where the runner is root; undefined for the runner's own. */
  readonly user: number | undefined;
  readonly programs: Programs;
  readonly signalGroup: SignalGroup;
  readonly record?: CommandRecord | undefined;
  /** Runs git apart, where another class can. */
  readonly runGit?: RunGitApart | undefined;
}

/** Returns the class that runs each command of work in a container of its own. */
export function createContainers(options: ContainerOptions): Isolation {
  const { engine, programs, user, limits, runGit } = options;
  const runner = randomUUID();
  removeWithThisProcess(engine, runner);
  const handOver = givenTo(programs, user);
  const remove = (name: string) => removeContainer(engine, name);
  return {
    name: "container",
    user,
    keepsRules: false,
    handOver,
    ...(runGit && { runGit }),
    async enter(workspace, readable, { network, image } = {}) {
      const { tree, home } = workspace;
      const tmp = join(workspace.folder, "tmp");
      await mkdir(tmp, { recursive: true, mode: 0o700 });
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
      const name = network && openContainerNetwork(parts, network, remove);
      const run = createCommandRunner(options.signalGroup, {
        ...(options.record && { record: options.record }),
        enclose: async (command) => {
          const used = await name?.();
          const commandFolder = await mkdtemp(join(workspace.folder, "command-"));
          await writeFile(join(commandFolder, "command"), commandScript(command), { mode: 0o600 });
          await handOver([commandFolder]);
          return containerCommand(parts, options.signalGroup, {
            name: `chartroom-${randomUUID()}`,
            commandFolder,
            args: (started) => commandArguments(parts, command, { ...started, network: used }),
          });
        },
      });
      const limited = withDiskLimits(run, { programs, limits, tmp, folders: [tree, home] });
      return network ? withNetwork(limited, network) : limited;
    },
  };
}

interface CommandPlace {
  readonly name: string;
  readonly commandFolder: string;
  args(started: { readonly name: string; readonly commandFolder: string }): readonly string[];
}

function containerCommand(
  { engine }: ContainerParts,
  signalGroup: SignalGroup,
  { name, commandFolder, args }: CommandPlace,
): Enclosure {
  let client: ChildProcess | undefined;
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
      if (!hasEnded()) await removeContainer(engine, name);
      await endGroup(signalGroup, groupId, graceMs);
    },
    async problem() {
      if (existsSync(join(commandFolder, STARTED_FILE))) return undefined;
      return "no container could be made for it, or its image has no such program";
    },
    close() {
      rmSync(commandFolder, { recursive: true, force: true });
    },
  };
}

/** Returns the variables of the engine's program, of those of the runner: nothing of the work. */
export function engineEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { PATH = "/usr/bin:/bin", HOME = "/", XDG_RUNTIME_DIR, DOCKER_HOST } = env;
  return {
    ...{ PATH, HOME },
    ...(XDG_RUNTIME_DIR && { XDG_RUNTIME_DIR }),
    ...(DOCKER_HOST && { DOCKER_HOST }),
  };
}

/** Runs the engine to its end; what it prints, and whether it ended well. */
export function runEngine(
  engine: Pick<Engine, "file" | "environment">,
  args: readonly string[],
): Promise<{ readonly isDone: boolean; readonly text: string }> {
  return new Promise((resolve) => {
    const child = spawn(engine.file, [...args], {
      cwd: "/",
      env: engine.environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let text = "";
    const add = (bytes: Buffer) => {
      if (text.length < 10_000) text += bytes;
    };
    child.stdout.on("data", add);
    child.stderr.on("data", add);
    child.once("error", (error) => resolve({ isDone: false, text: error.message }));
    child.once("close", (code) => resolve({ isDone: code === 0, text: text.trim() }));
  });
}

async function removeContainer(engine: Engine, name: string): Promise<void> {
  await runEngine(engine, ["rm", "--force", ...(engine.name === "podman" ? ["--time=0"] : []), name]);
}

/** Waits until its input ends, which it does with the process that has the other end, and removes the containers. */
const GUARD = `cat > /dev/null
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
