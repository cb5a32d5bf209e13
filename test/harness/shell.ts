import { spawnSync } from "node:child_process";

/** A POSIX shell: its program, and the options that make it one. */
export type Shell = readonly [program: string, ...options: string[]];

/** The shells of this machine that a command may meet as `sh`; `sh` itself is always there. */
export const SHELLS: readonly Shell[] = (
  [["sh"], ["dash"], ["bash", "--posix"], ["ksh"], ["busybox", "sh"]] as Shell[]
).filter(([program, ...options]) => spawnSync(program, [...options, "-c", ":"]).status === 0);

/** What a program of a shell did. */
export interface ShellRun {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs a program with nothing in its environment but a path and what is given, and without input. */
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
    timeout: 10_000,
  });
  return { status, output: stdout, errors: stderr };
}
