import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandRunner } from "../../process/command.ts";
import { findExecutable } from "../find-executable.ts";
import { tryWork } from "../trial.ts";
import type { WorkGroups } from "../work-groups.ts";
import { type ContainerOptions, createContainers } from "./container.ts";
import type { Engine } from "./container-arguments.ts";
import { engineEnvironment, runEngine } from "./engine.ts";
import { tryLimits } from "./limits-trial.ts";

type Parts = Omit<ContainerOptions, "programs" | "record">;
type TrialOptions = Omit<Parts, "engine" | "filterFile"> & {
  /** Groups like the work's, with the limits of a trial; undefined when there are none. */
  readonly trialGroups: WorkGroups | undefined;
  readonly path: string;
  readonly isRoot: boolean;
  /** The runner's environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folders to search for the engines' programs. */
  readonly programFolders: readonly string[];
};

/**
 * Tries the container engines, rootless ones first, by running a command like work does.
 *
 * @returns the parts for running containers, or why none can run, as a message for people
 */
export async function tryContainers(
  options: TrialOptions,
): Promise<{ readonly parts: Parts } | { readonly problem: string }> {
  if (options.image === "") return { problem: "--isolation-image names no image to try it with" };
  const problems: string[] = [];
  for (const engine of await findEngines(options)) {
    for (const limited of LIMITED) {
      // Docker's daemon starts containers in groups outside the runner's.
      if (limited === "work" && (engine.name === "docker" || !options.groups)) continue;
      if (limited === "nothing" && options.limits.processors > 0) continue;
      const parts = {
        ...options,
        engine: { ...engine, hasGroups: limited === "command" },
        groups: limited === "work" ? options.groups : undefined,
        filterFile: join(import.meta.dirname, "../seccomp/containers.json"),
      };
      const problem = (await tryIn(parts, options.path)) ?? (await limitsProblem(parts, options, limited));
      if (problem === undefined) return { parts };
      problems.push(`${engine.name}${AS[limited]}: ${problem}`);
    }
  }
  return { problem: problems.join("; ") || "neither podman nor docker is installed" };
}

/** What a control group can limit, the best first. */
const LIMITED = ["work", "command", "nothing"] as const;
const AS = { work: " in control groups of work", command: "", nothing: " without control groups" };

async function limitsProblem(
  parts: Parts,
  { trialGroups }: TrialOptions,
  limited: (typeof LIMITED)[number],
): Promise<string | undefined> {
  if (limited === "nothing") return undefined;
  const id = parts.user ?? (await stat("/proc/self")).uid;
  const groups = limited === "work" ? trialGroups : undefined;
  return tryLimits({ ...parts, user: `${id}:${id}`, runner: "trial", groups });
}

async function findEngines({
  programFolders,
  env,
  isRoot,
}: TrialOptions): Promise<readonly Omit<Engine, "hasGroups">[]> {
  const environment = engineEnvironment(env);
  const found: Omit<Engine, "hasGroups">[] = [];
  for (const name of ["podman", "docker"] as const) {
    const file = findExecutable(name, programFolders);
    if (file === undefined) continue;
    const isRootless = name === "podman" ? !isRoot : await isRootlessDocker({ file, environment });
    found.push({ name, file, environment, isRootless });
  }
  return found.toSorted((one, other) => Number(other.isRootless) - Number(one.isRootless));
}

async function isRootlessDocker(engine: Pick<Engine, "file" | "environment">): Promise<boolean> {
  const { text } = await runEngine(engine, ["info", "--format", "{{.SecurityOptions}}"]);
  return text.includes("rootless");
}

async function tryIn(parts: Parts, path: string): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "chartroom-isolation-"));
  try {
    const programs = { run: createCommandRunner(parts.signalGroup), path };
    const { name, isRootless } = parts.engine;
    const variables = { ROOT_IS_USER: name === "docker" && isRootless ? "1" : "" };
    return await tryWork(folder, createContainers({ ...parts, programs }), programs, variables);
  } catch (error) {
    return (error as Error).message;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
