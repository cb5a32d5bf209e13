import { spawn, spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "@jest/globals";

/** The root folder of the repository. */
export const ROOT = join(import.meta.dirname, "../..");

/** The folder where `npm ci` puts the packages' programs. */
export const PROGRAMS = join(ROOT, "node_modules/.bin");

/** The beginning of a command at a terminal in the root folder. To start it by npx takes seven times as long. */
export const CHARTROOM = `'${process.execPath}' bin/chartroom.js`;

/** A program that hangs is killed after this time. */
const TIME_MS = 120_000;

/** The result of a program. */
export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  /** By default the root folder of the repository. */
  readonly cwd?: string;
  /** The whole environment; by default that of a user's terminal. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Kills the program after this time; by default two minutes. */
  readonly timeMs?: number;
}

/** Runs a program to its end, without input. */
export function runProgram(
  command: string,
  args: readonly string[],
  { cwd = ROOT, env = terminalEnvironment(), timeMs = TIME_MS }: ProgramOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeMs,
      killSignal: "SIGKILL",
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/**
 * Returns the environment of a newly opened terminal: without Chartroom's settings, and without
 * npm's additions for scripts, above all the repository's own Node.
 */
export function terminalEnvironment(): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(CHARTROOM|npm)_|^(INIT_CWD|TOKEN)$/.test(name),
  );
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => !/node_modules|node-gyp/.test(folder));
  return { ...Object.fromEntries(kept), PATH: path.join(delimiter) };
}

/** Returns whether a user's terminal finds a program. */
export function hasProgram(name: string): boolean {
  const { PATH } = terminalEnvironment();
  // openssl and Go use the second form, nginx the third.
  return ["--version", "version", "-v"].some(
    (word) => spawnSync(name, [word], { env: { ...process.env, PATH } }).status === 0,
  );
}

/** Defines one test. */
export type DefineTest = (name: string, run: () => Promise<void>) => void;

/** Defines tests that need these programs, which `.ci/run` installs; see {@link testUnless}. */
export function testWith(...programs: readonly string[]): DefineTest {
  const missing = programs.filter((name) => !hasProgram(name));
  return testUnless(missing.length === 0 ? undefined : `there is no ${missing.join(", no ")}`);
}

/**
 * Defines tests that need what `.ci/run` installs. Where that is missing they fail in CI; on another machine they are
 * skipped, and their names say what is missing.
 *
 * @param lack what is missing, as a sentence; undefined where nothing is
 */
export function testUnless(lack: string | undefined): DefineTest {
  if (lack !== undefined && process.env.CI) return (name) => test(name, () => expect(lack).toBeUndefined());
  const define = lack === undefined ? test : test.skip; // Only CI can be sure to have what it has installed.
  return (name, run) => define(lack === undefined ? name : `${name} (skipped: ${lack})`, run);
}

/** Defines a suite that needs these programs, which `.ci/run` installs; without them it ends as {@link testUnless}. */
export function describeWith(programs: readonly string[], name: string, body: () => void): void {
  const missing = programs.filter((program) => !hasProgram(program));
  if (missing.length === 0) describe(name, body);
  else testUnless(`there is no ${missing.join(", no ")}`)(name, async () => undefined);
}
