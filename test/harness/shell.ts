import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

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
  /** Above 128 where a signal ended it. */
  readonly status: number;
  readonly output: string;
  readonly errors: string;
}

/** A program for a shell. */
export interface ShellProgram {
  readonly shell: Shell;
  readonly command: string;
  /** The program's environment has only PATH, LC_ALL and these. */
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Runs programs without input one after another, each in a shell of its own: to start them from one `sh` is cheap. */
export function runShells(programs: readonly ShellProgram[]): ShellRun[] {
  const results = mkdtempSync(join(tmpdir(), "chartroom-shell-"));
  const texts: Record<string, string> = {};
  /** Returns the expression by which `sh` reads a text from its own environment. */
  const hand = (text: string) => {
    const name = `text_${Object.keys(texts).length}`;
    texts[name] = text;
    return `"$${name}"`;
  };
  const lines = programs.map(({ shell, command, environment, cwd }, index) => {
    const variables = { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8", ...environment };
    const words = [...Object.entries(variables).map(([name, value]) => `${name}=${value}`), ...shell];
    const run = `cd ${hand(cwd)} && exec env -i ${[...words, "-c", command].map(hand).join(" ")}`;
    const to = join(results, String(index));
    return `(${run}) </dev/null >${hand(`${to}.output`)} 2>${hand(`${to}.errors`)}; echo $? >${hand(`${to}.status`)}`;
  });
  try {
    const driver = spawnSync("sh", ["-c", lines.join("\n")], {
      env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8", ...texts },
      stdio: "ignore",
      timeout: 60_000,
    });
    if (driver.error) throw driver.error;
    const read = (index: number, what: string) => readFileSync(join(results, `${index}.${what}`), "utf8");
    return programs.map((_, index) => ({
      status: Number(read(index, "status")),
      output: read(index, "output"),
      errors: read(index, "errors"),
    }));
  } finally {
    rmSync(results, { recursive: true });
  }
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
