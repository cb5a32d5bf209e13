import { type Command, Option } from "commander";
import type { PhaseName, RunFilter } from "../client/run/list.ts";
import type { LostTurnDecision, RunStart } from "../client/run/run.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags, type ServerAccess } from "../client/server-access.ts";
import { ExitCode } from "../start-error.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { numberOption, retryOption, type Terminal, withSettings } from "./command-line.ts";
import { declareRunApprove } from "./declare-approval.ts";
import { declareRunPush } from "./declare-push.ts";
import { declareRunChanges, declareRunReview } from "./declare-run-changes.ts";

// Loaded on demand: a command does not load the modules of others.
const loadRunCommands = () => import("../client/run/run.ts");

const PHASE_NAMES: readonly PhaseName[] = ["pending", "running", "waiting", "stopped"];

type Json = { readonly json?: boolean };
type Watching = Json & { readonly untilWaiting?: boolean; readonly retryFor: number };
type StartFlags = ClientFlags &
  Watching &
  Omit<RunStart, "name"> & { readonly name?: string; readonly watch?: boolean };
type ListFlags = ClientFlags &
  Json &
  Pick<RunFilter, "agent" | "limit"> & { readonly phase?: readonly PhaseName[] };

/** Declares `chartroom run ...`. */
export function declareRun(program: Command, terminal: Terminal): void {
  const run = program.command("run").description("start, follow and steer agent runs");
  withSettings(
    watchOptions(
      run
        .command("start")
        .description("start a run and print its id")
        .option("--agent <name or id>", "agent; by default, the organization's default agent")
        .option("--project <id>", "work in a new environment of this project")
        .option("--environment <id>", "work in this environment")
        .option("--url <url>", "work in a new environment for a repository, branch or pull request")
        .option("--class <id>", "class of the environment for --url")
        .option("--name <text>", "name of the run, at most 100 characters")
        .option("--prompt <text>", "first message; - reads it from standard input")
        .option(
          "--hold-after-lost-turn",
          "after a lost turn, deliver nothing until somebody decides how to continue",
        )
        .option("--watch", "follow the output of the run, as `run watch` does"),
    ).action(async ({ watch = false, name = "", prompt, ...flags }: StartFlags) => {
      const access = accessOf(flags, terminal);
      const { startRun, textOf } = await loadRunCommands();
      const text = prompt === undefined ? undefined : await textOf(prompt, terminal.input);
      const id = await startRun(access, { ...flags, name, prompt: text });
      terminal.print(flags.json ? `${JSON.stringify({ agentExecutionId: id })}\n` : `${id}\n`);
      if (watch) await follow(terminal, access, id, flags);
    }),
    CLIENT_SETTINGS,
  );
  withSettings(
    run
      .command("list")
      .description("list runs, newest first")
      .addOption(new Option("--phase <phases...>", "only runs in these phases").choices([...PHASE_NAMES]))
      .option("--agent <name or id>", "only runs of this agent")
      .option("--limit <number>", "maximum number of runs to list", numberOption("--limit", 1, 100_000), 50)
      .option("--json", "print a JSON list of service.v1.AgentExecution")
      .action(async ({ phase: phases = [], agent, limit, json, ...flags }: ListFlags) => {
        const access = accessOf(flags, terminal);
        const { listRuns, runJson, runTable } = await import("../client/run/list.ts");
        const runs = await listRuns(access, { phases, agent, limit });
        terminal.print(json ? runJson(runs) : await runTable(access, runs, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    watchOptions(
      run
        .command("watch")
        .description("print the output of a run from its beginning, and follow it until the run stops")
        .argument("<run>", "id of the run"),
    ).action((id: string, flags: ClientFlags & Watching) =>
      follow(terminal, accessOf(flags, terminal), id, flags),
    ),
    CLIENT_SETTINGS,
  );
  withSettings(
    run
      .command("send")
      .description("send a message to a run and print the message's id")
      .argument("<run>", "id of the run")
      .argument("[text]", "message; by default, or with -, standard input")
      .option("--steer", "deliver the message into the current turn")
      .action(
        async (id: string, given: string | undefined, flags: ClientFlags & { readonly steer?: boolean }) => {
          const access = accessOf(flags, terminal);
          const { sendToRun, textOf } = await loadRunCommands();
          const text = await textOf(given, terminal.input);
          terminal.print(`${await sendToRun(access, { run: id, text, steer: flags.steer ?? false })}\n`);
        },
      ),
    CLIENT_SETTINGS,
  );
  declareRunApprove(run, terminal);
  declareRunReview(run, terminal);
  declareRunPush(run, terminal);
  declareRunChanges(run, terminal);
  withSettings(
    watchOptions(
      run
        .command("resume")
        .description("continue a stopped run in a new run, and print the new run's id")
        .argument("<run>", "id of the stopped run")
        .argument("[text]", "first message; - reads it from standard input")
        .option("--watch", "follow the output of the new run, as `run watch` does"),
    ).action(
      async (
        run: string,
        given: string | undefined,
        { watch = false, ...flags }: ClientFlags & Watching & { readonly watch?: boolean },
      ) => {
        const access = accessOf(flags, terminal);
        const { resumeRun, textOf } = await loadRunCommands();
        const prompt = given === undefined ? undefined : await textOf(given, terminal.input);
        const { id, earlierSequence } = await resumeRun(access, { run, prompt });
        terminal.print(flags.json ? `${JSON.stringify({ agentExecutionId: id })}\n` : `${id}\n`);
        if (watch) await follow(terminal, access, id, { ...flags, earlierSequence });
      },
    ),
    CLIENT_SETTINGS,
  );
  withSettings(
    watchOptions(
      run
        .command("fork")
        .description("branch off a run into a new run with its conversation, and print the new run's id")
        .argument("<run>", "id of the run, which continues unaffected")
        .argument("[text]", "first message; - reads it from standard input")
        .option(
          "--sequence <number>",
          "block after which to branch; by default, the last one",
          numberOption("--sequence", 1, Number.MAX_SAFE_INTEGER),
        )
        .option("--watch", "follow the output of the new run, as `run watch` does"),
    ).action(
      async (
        run: string,
        given: string | undefined,
        {
          watch = false,
          sequence,
          ...flags
        }: ClientFlags & Watching & { readonly watch?: boolean; readonly sequence?: number },
      ) => {
        const access = accessOf(flags, terminal);
        const { forkRun, textOf } = await loadRunCommands();
        const prompt = given === undefined ? undefined : await textOf(given, terminal.input);
        const { id, earlierSequence } = await forkRun(access, { run, prompt, sequence });
        terminal.print(flags.json ? `${JSON.stringify({ agentExecutionId: id })}\n` : `${id}\n`);
        if (watch) await follow(terminal, access, id, { ...flags, earlierSequence });
      },
    ),
    CLIENT_SETTINGS,
  );
  declareDecision(run, terminal, {
    command: "retry-turn",
    decision: "retryTurn",
    description: "retry the turn that was lost",
  });
  declareDecision(run, terminal, {
    command: "go-on",
    decision: "goOn",
    description: "continue without the turn that was lost",
  });
  withSettings(
    run
      .command("stop")
      .description("stop a run and its sub-agents")
      .argument("<run>", "id of the run")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadRunCommands()).stopRun(access, id);
      }),
    CLIENT_SETTINGS,
  );
}

function declareDecision(
  run: Command,
  terminal: Terminal,
  {
    command,
    decision,
    description,
  }: { readonly command: string; readonly decision: LostTurnDecision; readonly description: string },
): void {
  withSettings(
    run
      .command(command)
      .description(description)
      .argument("<run>", "id of the run")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadRunCommands()).decideLostTurn(access, id, decision);
      }),
    CLIENT_SETTINGS,
  );
}

function watchOptions(command: Command): Command {
  return command
    .option("--until-waiting", "exit when the agent has answered everything and waits for input")
    .option("--json", "print one service.v1.WatchAgentExecutionResponse per line, as JSON")
    .addOption(retryOption());
}

async function follow(
  terminal: Terminal,
  access: ServerAccess,
  agentExecutionId: string,
  {
    untilWaiting = false,
    json = false,
    retryFor,
    earlierSequence,
  }: Watching & { readonly earlierSequence?: bigint },
): Promise<void> {
  const { watchRun } = await import("../client/run/watch.ts");
  const { print } = terminal;
  const place = { ...access, agentExecutionId, earlierSequence, retryForMs: retryFor * 1_000 };
  const isWell = await watchRun({ ...place, untilWaiting, json, print });
  terminal.setExitCode(isWell ? 0 : ExitCode.runFailed);
}
