import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeAll, expect, test } from "@jest/globals";
import { PROGRAMS, ROOT, runProgram, terminalEnvironment, testUnless, testWith } from "../harness/program.ts";
import { runCommand, runHostedCommand, temporaryFolder } from "../harness/server.ts";

/** The terminal of a user who has `chartroom` on the path. */
let env: Record<string, string | undefined>;
beforeAll(() => {
  const programs = join(temporaryFolder(), "bin");
  mkdirSync(programs, { recursive: true });
  symlinkSync(join(ROOT, "bin/chartroom.js"), join(programs, "chartroom"));
  const terminal = terminalEnvironment();
  env = { ...terminal, PATH: [programs, PROGRAMS, terminal.PATH].join(delimiter), TERM: "dumb" };
});

const RUN_COMMANDS = [
  "approve",
  "diff",
  "files",
  "fork",
  "go-on",
  "help",
  "list",
  "pr",
  "push",
  "resume",
  "retry-turn",
  "review",
  "send",
  "start",
  "stop",
  "watch",
];

/** What bash's own completion needs: Debian's package bash-completion. */
const BASH_COMPLETION = "/usr/share/bash-completion/bash_completion";

const testBash = testUnless(existsSync(BASH_COMPLETION) ? undefined : `there is no ${BASH_COMPLETION}`);

/** Returns what bash offers for the last of some words. The script is sourced twice, as by two startup files. */
async function completedByBash(words: readonly string[]): Promise<{ stderr: string; offered: string[] }> {
  const script = `
    source ${BASH_COMPLETION}
    eval "$(chartroom completion bash)"
    eval "$(chartroom completion bash)"
    # It works only while bash itself completes.
    compopt() { printf 'compopt %s\n' "$*"; }
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
    COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}
    __chartroom_complete
    printf '%s\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = await runProgram("bash", ["--norc", "-c", script, "bash", ...words], { env });
  return { stderr, offered: stdout.trim().split("\n").toSorted() };
}

testBash("bash completes the commands below a command", async () => {
  const expected = { stderr: "", offered: ["compopt +o default", ...RUN_COMMANDS].toSorted() };
  expect(await completedByBash(["chartroom", "run", ""])).toEqual(expected);
});

testBash("bash carries out nothing of what is typed", async () => {
  const file = join(temporaryFolder(), "made");
  const words = ["chartroom", "run", "send", "ID", `"$(touch`, `${file})"`, "--st"];
  expect((await completedByBash(words)).offered).toEqual(["--steer", "compopt +o default"]);
  expect(existsSync(file)).toBe(false);
});

testBash("bash completes the values of an option, and paths by itself", async () => {
  expect((await completedByBash(["chartroom", "run", "list", "--phase", "st"])).offered).toEqual([
    "compopt +o default",
    "stopped",
  ]);
  expect((await completedByBash(["chartroom", "export", "do"])).offered).toEqual([
    "compopt -o dirnames +o default",
  ]);
  // Bash completes files where the function offers nothing.
  const files = await runProgram(
    "bash",
    ["--norc", "-c", `eval "$(chartroom completion bash)"; complete -p chartroom`],
    { env },
  );
  expect(files.stdout).toBe("complete -o default -F __chartroom_complete chartroom\n");
});

testWith("fish")("fish completes commands, and the values of an option", async () => {
  const completed = async (line: string) => {
    const script = `chartroom completion fish | source; complete -C '${line}'`;
    const { stdout } = await runProgram("fish", ["--no-config", "-c", script], { env });
    return stdout
      .trim()
      .split("\n")
      .map((each) => each.split("\t")[0])
      .toSorted();
  };
  expect(await completed("chartroom run ")).toEqual(RUN_COMMANDS);
  expect(await completed("chartroom run list --phase ")).toEqual([
    "pending",
    "running",
    "stopped",
    "waiting",
  ]);
  expect(await completed("chartroom token ")).toEqual(["create", "help", "list", "renew", "revoke"]);
  expect(await completed("chartroom approval ")).toEqual(["approve", "deny", "help", "list", "show"]);
  expect(await completed("chartroom workflow ")).toEqual([
    "cancel",
    "help",
    "list",
    "logs",
    "retry",
    "show",
    "start",
    "watch",
  ]);
  expect(await completed("chartroom webhook ")).toEqual([
    "create",
    "delete",
    "help",
    "ledger",
    "list",
    "pause",
    "redeliver",
    "resume",
    "rotate",
  ]);
  expect(await completed("chartroom runner ")).toEqual(["create", "list"]);
  expect(await completed("chartroom restore tsconf")).toEqual(["tsconfig.json"]);
  expect(await completed("chartroom approval list --state ")).toEqual([
    "approved",
    "cancelled",
    "denied",
    "expired",
    "pending",
  ]);
});

testWith("zsh")("zsh completes options and their values", async () => {
  // A shell at a terminal of its own: zsh completes nowhere else. The sums keep what is typed from being what is awaited.
  const script = `
    zmodload zsh/zpty
    zpty -b shell zsh -f -i
    zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(chartroom completion zsh); print ready$((1+1))'
    zpty -r shell seen '*ready2*'
    zpty -w -n shell $'print typed$((1+1)) chartroom; chartroom run list --ph\\t \\tstop\\t --help; chartroom restore tsconf\\t\\n'
    zpty -r shell seen '*--phase*stopped*--help*tsconfig.json*'
    print -r -- "$seen"
    zpty -d shell`;
  const { code, stdout, stderr } = await runProgram("zsh", ["-f", "-c", script], { env });
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/--phase.* stopped/s);
  // Behind the values there is no empty description.
  expect(stdout).not.toMatch(/pending +--\s/);
});

test.each([
  ["a value behind another of the same option", ["run", "list", "--phase", "pending", "st"], ["stopped"]],
  ["the value of an option behind an equals sign", ["run", "list", "--phase=w"], ["waiting"]],
  ["a command below help", ["help", "run", "st"], ["start", "stop"]],
  ["a value of a setting", ["serve", "--log-level", "e"], ["error"]],
  ["an option behind arguments", ["workflow", "start", "Count lines", "--wa"], ["--watch"]],
  ["no command behind an argument", ["run", "watch", "ID", ""], []],
  ["no option behind --", ["run", "send", "ID", "--", "--"], []],
])("completes %s", async (_, words, expected) => {
  const { stdout } = await runHostedCommand(["complete", "--", ...words]);
  const lines = stdout.trimEnd().split("\n");
  expect(lines.map((line) => line.split("\t")[0])).toEqual([...expected, ":4"]);
});

test.each([
  [["restore", ""], ":0"],
  [["apply", "-f", ""], ":0"],
  [["serve", "--data-dir", ""], ":16"],
  [["export", ""], ":16"],
  [["run", "files", "ID", ""], ":4"],
])("leaves the paths of %j to the shell", async (words, directive) => {
  expect((await runHostedCommand(["complete", "--", ...words])).stdout).toBe(`${directive}\n`);
});

test("other shells are refused, and the ones there are named", async () => {
  const { code, stderr } = await runCommand(["completion", "tcsh"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/'tcsh' is invalid.*zsh, bash, fish/s);
});
