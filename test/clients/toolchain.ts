import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { hasProgram, PROGRAMS, ROOT, runProgram, terminalEnvironment } from "../harness/program.ts";
import { temporaryFolder } from "../harness/server.ts";

/** Downloads and compilers are slow on a slow machine. */
export const BUILD_MS = 1_800_000;

/** How to install a program that the suite needs. */
const INSTALL = {
  go: "Go 1.26 or newer",
  python3: "Python 3.11 or newer with its module venv",
  java: "a JDK 17 or newer",
  mvn: "Maven 3.8 or newer",
  chromium: "Debian's package chromium",
} as const;

/**
 * Defines a suite that needs these programs. Where one is missing the suite names it: it fails in
 * CI, and is skipped on other machines.
 */
export function describeWith(
  programs: readonly (keyof typeof INSTALL)[],
  name: string,
  body: () => void,
): void {
  const missing = programs.filter((program) => !hasProgram(program));
  const advice = missing.map((program) => `no ${program} on this machine: install ${INSTALL[program]}`);
  if (missing.length > 0 && process.env.CI) {
    test(`${name} has its tool chain`, () => expect(advice).toEqual([]));
    return;
  }
  const define = missing.length === 0 ? describe : describe.skip; // Not every developer has every tool chain; CI does.
  define([name, ...advice].join("; "), body);
}

/**
 * Creates the folder of another team: its own files, the template, and the contract in `chartroom`
 * as it was before projects had `updated_at`, so that responses contain a field that the client
 * does not know.
 *
 * @param sources a folder of test/clients
 */
export function otherTeam(sources: string, template: string): string {
  const folder = temporaryFolder();
  cpSync(join(ROOT, "test/clients", sources), folder, { recursive: true });
  mkdirSync(join(folder, "chartroom"));
  for (const name of ["proto", "third_party", "buf.yaml"]) {
    cpSync(join(ROOT, name), join(folder, "chartroom", name), { recursive: true });
  }
  const path = join(folder, "chartroom/proto/service/v1/project.proto");
  const present = readFileSync(path, "utf8");
  const older = present.replace(
    /(message ProjectMetadata \{(?:(?!\n\}).)*?) {2}\S+ updated_at = 5;\n/s,
    "$1",
  );
  if (older === present) throw new Error("ProjectMetadata has no updated_at any more: take another field");
  writeFileSync(path, older);
  writeFileSync(join(folder, "buf.gen.yaml"), template);
  return folder;
}

/**
 * Returns the environment of a user's terminal, with the repository's programs and further folders
 * on its PATH.
 */
export function environmentWith(...folders: readonly string[]): Record<string, string | undefined> {
  const env = terminalEnvironment();
  return { ...env, PATH: [...folders, PROGRAMS, env.PATH].join(delimiter) };
}

/** Runs a step of a build; throws with its output when it fails. */
export async function build(
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
  command: string,
  ...args: readonly string[]
): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, args, { cwd, env, timeMs: BUILD_MS });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

/** Returns a folder that is kept outside the tree for the next run, and is made where it is not there. */
async function keptFolder(
  name: string,
  key: string,
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 16);
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const folder = join(cache, "chartroom-clients", `${name}-${hash}`);
  const isComplete = join(folder, "complete");
  if (!existsSync(isComplete)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await make(folder);
    writeFileSync(isComplete, "");
  }
  return folder;
}

/** Returns the folder of programs of a Python environment with the packages of a requirements file. */
export async function pythonPrograms(requirements: string): Promise<string> {
  const folder = await keptFolder("python", readFileSync(requirements, "utf8"), async (made) => {
    const env = terminalEnvironment();
    await build(ROOT, env, "python3", "-m", "venv", made);
    await build(ROOT, env, join(made, "bin/pip"), "install", "--quiet", "--requirement", requirements);
  });
  return join(folder, "bin");
}

/**
 * Installs a wheel into an environment of its own, where its dependencies are those of another one, and returns the folder
 * of its programs. Fails when one of them is missing or has a version that the wheel does not take.
 *
 * @param programs the folder of programs of the other environment
 */
export async function installWheel(programs: string, wheel: string, folder: string): Promise<string> {
  const env = environmentWith(programs);
  const packages = async (python: string) =>
    (await build(ROOT, env, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")).trim();
  await build(ROOT, env, "python3", "-m", "venv", "--without-pip", folder);
  const python = join(folder, "bin/python3");
  writeFileSync(join(await packages(python), "dependencies.pth"), `${await packages("python3")}\n`);
  const install = ["--disable-pip-version-check", "--python", python, "install", "--quiet", "--no-index"];
  await build(ROOT, env, "python3", "-m", "pip", ...install, wheel);
  return join(folder, "bin");
}

/** Makes the pack of a language in a folder and returns its path, which the script prints. */
export async function makePack(
  language: string,
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
  ...options: readonly string[]
): Promise<string> {
  const script = ["--disable-warning=ExperimentalWarning", `scripts/packs/${language}.ts`];
  return (await build(ROOT, env, "node", ...script, "--to", folder, ...options)).trim();
}

/** Returns the folder of programs of a package of npm, named with its version; no install script runs. */
export async function npmPrograms(named: string): Promise<string> {
  const folder = await keptFolder("npm", named, async (made) => {
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
    await build(made, environmentWith(), "npm", "install", "--prefix", made, ...options, named);
  });
  return join(folder, "node_modules/.bin");
}
