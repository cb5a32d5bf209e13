import type { Command } from "commander";
import type { PushProgress, PushResult, RunPullRequest, RunPush } from "../client/push-run.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { ExitCode } from "../start-error.ts";
import { type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadPushCommands = () => import("../client/push-run.ts");

type Shown = { readonly json?: boolean; readonly wait?: boolean };

/** Declares `chartroom run push` and `chartroom run pr`. */
export function declareRunPush(run: Command, terminal: Terminal): void {
  withSettings(
    pushOptions(
      run
        .command("push")
        .description("push what a run has changed to a branch, with your own credential for the host")
        .argument("<run>", "its id"),
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
        .description("push what a run has changed, and open a pull request for it")
        .argument("<run>", "its id")
        .option(
          "--title <text>",
          "the title; by default the name of the run, or its first message's first line",
        )
        .option("--body <text>", "what the pull request says; by default the first message of the run")
        .option("--base <name>", "the branch it is meant for; by default the one that was checked out")
        .option("--draft", "open it as a draft"),
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
    .option("--branch <name>", "the branch; by default one that is named after the run")
    .option(
      "--commit-message <text>",
      "commit what is not committed, with this message and you as the author",
    )
    .option("--folder <path>", "the folder of the repository; by default the first")
    .option("--force", "let the branch lose commits, where the organization's rules allow it")
    .option("--wait", "where people are asked first, wait until they have decided")
    .option("--json", "print it as JSON: push, a service.v1.EnvironmentPush, and pullRequest");
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
