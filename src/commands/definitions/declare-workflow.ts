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
    .description("start workflows, follow their executions, and read their logs");
  withSettings(
    workflow
      .command("list")
      .description("list workflows, oldest first")
      .option("--search <text>", "only workflows with this text in their name, description or id")
      .option(
        "--limit <number>",
        "maximum number of workflows to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
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
      .description("show a workflow and its latest executions, or an execution and its actions")
      .argument("<workflow or execution>", "name or id of a workflow, or id of an execution")
      .option("--json", "print JSON")
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
        .description("start a workflow and print the execution's id")
        .argument("<workflow>", "name or id of the workflow")
        .option("--parameter <key=value...>", "parameters of the workflow")
        .option("--repository <urls...>", "run on these repositories instead of the workflow's own")
        .option("--project <ids...>", "run on these projects instead of the workflow's own"),
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
      .description("print each state change of an execution and its actions until the execution ends")
      .argument("<execution>", "id of the execution")
      .option("--json", "print one service.v1.WorkflowExecution per line, as JSON")
      .addOption(retryOption())
      .action((id: string, flags: ClientFlags & Watching) =>
        follow(terminal, accessOf(flags, terminal), id, flags),
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    workflow
      .command("logs")
      .description("print the logs of an action, or of all actions of an execution")
      .argument("<action or execution>", "id of the action or execution")
      .option("--step <number>", "only this step, counted from 0", numberOption("--step", 0, MAX_STEP))
      .option("--follow", "follow the logs until the action ends")
      .option("--json", "print one service.v1.StreamActionLogsResponse per line, as JSON")
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
      .description("cancel an execution and stop its actions")
      .argument("<execution>", "id of the execution")
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
        .description("retry the failed actions of an execution in a new execution, and print its id")
        .argument("<execution>", "id of the ended execution"),
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
    .option("--watch", "follow the execution, as `workflow watch` does")
    .option("--json", "print JSON: the id and, with --watch, one service.v1.WorkflowExecution per line")
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
