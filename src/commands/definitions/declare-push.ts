import type { Command } from "commander";
import type { PushProgress, PushResult, RunPullRequest, RunPush } from "../client/run/push.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { ExitCode } from "../start-error.ts";
import { type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadPushCommands = () => import("../client/run/push.ts");

type Shown = { readonly json?: boolean; readonly wait?: boolean };

/** Declares `chartroom run push` and `chartroom run pr`. */
export function declareRunPush(run: Command, terminal: Terminal): void {
  withSettings(
    pushOptions(
      run
        .command("push")
        .description("push a run's changes to a branch, with your own credential for the host")
        .argument("<run>", "id of the run"),
    ).action(async (id: string, { json, wait, ...given }: ClientFlags & Shown & RunPush) => {
      const { pushRun } = await loadPushCommands();
      const progress = progressOf(terminal, wait);
      const { server: _, ...push } = given;
      await show(terminal, json, pushRun(accessOf(given, terminal), id, push, progress), progress);
    }),
    CLIENT_SETTINGS,
  );
  withSettings(
    pushOptions(
      run
        .command("pr")
        .description("push a run's changes and open a pull request")
        .argument("<run>", "id of the run")
        .option(
          "--title <text>",
          "title; by default, the name of the run, or the first line of its first message",
        )
        .option("--body <text>", "description of the pull request; by default, the first message of the run")
        .option("--base <name>", "branch to merge into; by default, the one that was checked out")
        .option("--draft", "open a draft pull request"),
    ).action(async (id: string, { json, wait, ...given }: ClientFlags & Shown & RunPullRequest) => {
      const { openPullRequestOfRun } = await loadPushCommands();
      const progress = progressOf(terminal, wait);
      const access = accessOf(given, terminal);
      const { server: _, ...push } = given;
      await show(terminal, json, openPullRequestOfRun(access, id, push, progress), progress);
    }),
    CLIENT_SETTINGS,
  );
}

function pushOptions(command: Command): Command {
  return command
    .option("--branch <name>", "branch to push to; by default, one named after the run")
    .option(
      "--commit-message <text>",
      "first commit uncommitted changes, with this message and you as the author",
    )
    .option("--folder <path>", "folder of the repository; by default, the first repository")
    .option(
      "--force",
      "force the push, which can remove commits from the branch; the organization's rules must allow it",
    )
    .option("--wait", "if the push needs an approval, wait for the decision")
    .option("--json", "print a JSON object with push, a service.v1.EnvironmentPush, and pullRequest");
}

/** Returns the progress line of a terminal; prints nothing elsewhere. */
function progressOf({ output }: Terminal, wait = false): PushProgress & { readonly end: () => void } {
  const isTerminal = (output as { readonly isTTY?: boolean }).isTTY === true;
  const write = (text: string) => isTerminal && output.write(`\r\u001b[K${text}`);
  return { wait, tell: (line) => write(`${line} ...`), end: () => write("") };
}

async function show(
  terminal: Terminal,
  json: boolean | undefined,
  result: Promise<PushResult>,
  { end }: { readonly end: () => void },
): Promise<void> {
  const { isPushed, pushJson, pushText } = await loadPushCommands();
  const done = await result.finally(end);
  terminal.print(json ? pushJson(done) : pushText(done));
  if (!isPushed(done)) terminal.setExitCode(ExitCode.unavailable);
}
