import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";

/** A POSIX shell: the path of its program, and the options that make it one. */
export type Shell = readonly [program: string, ...options: string[]];

/** The different shells of this machine that a command may find as `sh`; always includes `sh` itself. */
export const SHELLS: readonly Shell[] = presentShells([
  ["sh"],
  ["dash"],
  ["bash", "--posix"],
  ["ksh"],
  ["busybox", "sh"],
]);

/** The result of a shell's program. */
export interface ShellRun {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs a program without input; its environment has only PATH, LC_ALL and the given variables. */
export function runShell(
  [program, ...options]: Shell,
  command: string,
  environment: Readonly<Record<string, string>>,
  cwd: string,
): ShellRun {
  const { status, stdout, stderr } = spawnSync(program, [...options, "-c", command], {
    cwd,
    env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    timeout: 60_000,
  });
  return { status, output: stdout, errors: stderr };
}

function presentShells(shells: readonly Shell[]): Shell[] {
  const present = new Map<string, Shell>();
  for (const [name, ...options] of shells) {
    const found = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim();
    if (found === "") continue;
    const program = realpathSync(found);
    if (!present.has(program)) present.set(program, [found, ...options]);
  }
  return [...present.values()];
}
