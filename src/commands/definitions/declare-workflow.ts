import type { Command } from "commander";
import { accessOf, CLIENT_SETTINGS, type ClientFlags, type ServerAccess } from "../client/server-access.ts";
import type { WorkflowStart } from "../client/workflow.ts";
import { ExitCode } from "../start-error.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { noteOf, numberOption, retryOption, type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadWorkflowCommands = () => import("../client/workflow.ts");
const loadWorkflowTexts = () => import("../client/workflow-text.ts");

type Json = { readonly json?: boolean };
type Watching = Json & { readonly watch?: boolean; readonly retryFor: number };
type StartFlags = ClientFlags & Watching & { readonly [Name in keyof WorkflowStart]?: readonly string[] };
type LogFlags = ClientFlags &
  Json & { readonly step?: number; readonly follow?: boolean; readonly retryFor: number };

/** The maximum index of a step (contract, WorkflowAction.steps). */
const MAX_STEP = 49;

/** Declares `chartroom workflow ...`. */
export function declareWorkflow(program: Command, terminal: Terminal): void {
  const workflow = program
    .command("workflow")
    .description("workflows: start them, follow their executions, and read what they printed");
  withSettings(
    workflow
      .command("list")
      .description("list workflows, in the order in which they were made")
      .option("--search <text>", "only workflows with this text in their name, description or id")
      .option("--limit <number>", "the most workflows to list", numberOption("--limit", 1, 100_000), 50)
      .option("--json", "print a JSON list of service.v1.Workflow")
      .action(
        async ({
          search,
          limit,
          json,
          ...flags
        }: ClientFlags & Json & { readonly search?: string; readonly limit: number }) => {
          const access = accessOf(flags, terminal);
          const { listWorkflows } = await loadWorkflowCommands();
          const { workflowsJson, workflowTable } = await loadWorkflowTexts();
          const found = await listWorkflows(access, { search, limit });
          terminal.print(json ? workflowsJson(found) : workflowTable(found, widthOf(terminal)));
        },
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    workflow
      .command("show")
      .description("show a workflow with its newest executions, or an execution with its actions")
      .argument("<workflow or execution>", "the name or id of a workflow, or the id of an execution")
      .option("--json", "print it as JSON")
      .action(async (named: string, { json, ...flags }: ClientFlags & Json) => {
        const access = accessOf(flags, terminal);
        const { findShown } = await loadWorkflowCommands();
        const { shownJson, shownText } = await loadWorkflowTexts();
        const found = await findShown(access, named);
        terminal.print(json ? shownJson(found) : shownText(found, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    watchOptions(
      workflow
        .command("start")
        .description("start a workflow and print the id of the execution")
        .argument("<workflow>", "its name or id")
        .option("--parameter <key=value...>", "values of parameters")
        .option("--repository <urls...>", "run over these repositories, and not over those of the workflow")
        .option("--project <ids...>", "run over these projects, and not over those of the workflow"),
    ).action(
      async (named: string, { parameter = [], repository = [], project = [], ...flags }: StartFlags) => {
        const access = accessOf(flags, terminal);
        const { startWorkflow } = await loadWorkflowCommands();
        const id = await startWorkflow(access, named, { parameter, repository, project });
        await tellStarted(terminal, access, id, flags);
      },
    ),
    CLIENT_SETTINGS,
  );
  withSettings(
    workflow
      .command("watch")
      .description(
        "print the state of an execution and of its actions, whenever it changes, until the execution ends",
      )
      .argument("<execution>", "its id")
      .option("--json", "print one JSON object a line: service.v1.WorkflowExecution")
      .addOption(retryOption())
      .action((id: string, flags: ClientFlags & Watching) =>
        follow(terminal, accessOf(flags, terminal), id, flags),
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    workflow
      .command("logs")
      .description("print what the steps of an action printed, or those of all actions of an execution")
      .argument("<action or execution>", "its id")
      .option("--step <number>", "only this step, from 0", numberOption("--step", 0, MAX_STEP))
      .option("--follow", "go on until the action ends")
      .option("--json", "print one JSON object a line: service.v1.StreamActionLogsResponse")
      .addOption(retryOption())
      .action(async (id: string, { step, follow = false, json = false, retryFor, ...flags }: LogFlags) => {
        const access = accessOf(flags, terminal);
        const { printLogs } = await import("../client/workflow-logs.ts");
        const { print } = terminal;
        await printLogs(access, id, {
          ...{ step, follow, json, retryForMs: retryFor * 1_000 },
          ...{ print, note: noteOf(terminal) },
        });
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    workflow
      .command("cancel")
      .description("cancel an execution: its actions are stopped")
      .argument("<execution>", "its id")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadWorkflowCommands()).cancelExecution(access, id);
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    watchOptions(
      workflow
        .command("retry")
        .description("do the failed actions of an execution again, and print the id of the new execution")
        .argument("<execution>", "its id; it has ended"),
    ).action(async (id: string, flags: ClientFlags & Watching) => {
      const access = accessOf(flags, terminal);
      const { retryExecution } = await loadWorkflowCommands();
      await tellStarted(terminal, access, await retryExecution(access, id), flags);
    }),
    CLIENT_SETTINGS,
  );
}

function watchOptions(command: Command): Command {
  return command
    .option("--watch", "print how it goes on after its id, as `workflow watch` does")
    .option("--json", "print JSON: the id, and with --watch one service.v1.WorkflowExecution a line")
    .addOption(retryOption());
}

async function tellStarted(
  terminal: Terminal,
  access: ServerAccess,
  id: string,
  { watch = false, ...flags }: Watching,
): Promise<void> {
  terminal.print(flags.json ? `${JSON.stringify({ workflowExecutionId: id })}\n` : `${id}\n`);
  if (watch) await follow(terminal, access, id, flags);
}

async function follow(
  terminal: Terminal,
  access: ServerAccess,
  executionId: string,
  { json = false, retryFor }: Watching,
): Promise<void> {
  const { watchExecution } = await import("../client/watch-workflow.ts");
  const { print } = terminal;
  const watched = { executionId, json, print, note: noteOf(terminal), retryForMs: retryFor * 1_000 };
  const isWell = await watchExecution(access, watched);
  terminal.setExitCode(isWell ? 0 : ExitCode.runFailed);
}
