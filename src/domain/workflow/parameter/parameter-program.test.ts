// biome-ignore-all lint/suspicious/noTemplateCurlyInString: programs for sh contain ${ } that are
// not template placeholders.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import fc from "fast-check";
import { replay } from "../../../../test/harness/seed.ts";
import { runShells, SHELLS } from "../../../../test/harness/shell.ts";
import { brokenShellProgram, HOLE, shellProgram } from "../../../../test/harness/shell-program.ts";
import { DomainError } from "../../error.ts";
import { parameterVariable, withReferences } from "./parameter-reference.ts";

/**
 * Characters that mean the same to sh in every position: the output of a program with them shows
 * where a value belongs.
 */
const MARK = ".Qq7.";

/** Only functions, so that a broken program cannot run anything of the machine. */
const PRELUDE = [
  "show() { printf '<%s>' \"$@\"; printf '\\n'; }",
  "cat() { while IFS= read -r line; do printf '%s\\n' \"$line\"; done; }",
  "v=",
  "",
].join("\n");

const SYNTAX = /syntax|unterminated|unexpected|bad substitution/i;

const folder = mkdtempSync(join(tmpdir(), "chartroom-program-"));
writeFileSync(join(folder, "f1"), "");
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Compares the output of a program with references, given the value, with that of the same program
 * with the mark in place of each reference.
 * @returns whether the program could be judged
 */
function judge(program: string, value: string): boolean {
  const written = PRELUDE + program;
  let command: string;
  try {
    command = withReferences(written.replaceAll(HOLE, "{{ .Parameters.p }}"), "place").command;
  } catch (thrown) {
    if (thrown instanceof DomainError) return false;
    throw thrown;
  }
  const environment = { PATH: folder, [parameterVariable("p")]: value };
  const marked = written.replaceAll(HOLE, MARK);
  const runs = runShells(
    SHELLS.flatMap((shell) =>
      [marked, command].map((each) => ({ shell, command: each, environment, cwd: folder })),
    ),
  );
  let judged = false;
  for (const [position, shell] of SHELLS.entries()) {
    const [plain, referring] = runs.slice(2 * position);
    if (!plain || !referring) throw new Error("a program did not run");
    if (SYNTAX.test(plain.errors)) continue;
    judged = true;
    const { status, output } = referring;
    const expected = plain.output.replaceAll(MARK, () => value);
    expect({ shell, command, status, output }).toEqual({
      shell,
      command,
      status: plain.status,
      output: expected,
    });
  }
  return judged;
}

test("a value appears in the output of a program just as plain text would", () => {
  const value = "@a  *  $(id) 'x' \"y\" `id` \\ ;rm} ${v} # )\nE\n,{@";
  let judged = 0;
  const numRuns = 100;
  fc.assert(
    fc.property(shellProgram, (program) => {
      if (judge(`w=${HOLE}z${HOLE}; ${program}`, value)) judged += 1;
    }),
    { ...replay, numRuns },
  );
  expect(judged).toBeGreaterThan(numRuns / 2);
});

test("of a broken program a value prints as plain text would, or the program is refused", () => {
  // Without blanks and patterns, which sh would expand where the program removes the quotes of a $(
  // ).
  const value = "@a'b\"c$(id)d`id`\\e;f#g}h)&|<k@";
  let judged = 0;
  const numRuns = 150;
  fc.assert(
    fc.property(brokenShellProgram, (program) => {
      // Its process id, which $$ prints, differs each time.
      fc.pre(!/\$\{?\$/.test(program.replaceAll("\\\n", "")));
      if (judge(`w=z; show ${HOLE}; ${program}`, value)) judged += 1;
    }),
    { ...replay, numRuns },
  );
  expect(judged).toBeGreaterThan(numRuns / 10);
});
