import { type Command, Option } from "commander";
import type { Approval } from "#gen/service/v1/approval_pb.js";
import type { ApprovalFilter, DecisionArguments, StateName } from "../client/approval.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { StartError } from "../start-error.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { numberOption, type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadApprovalCommands = () => import("../client/approval.ts");

const STATE_NAMES: readonly StateName[] = ["pending", "approved", "denied", "expired", "cancelled"];

type Json = { readonly json?: boolean };
type ListFlags = ClientFlags &
  Json &
  Pick<ApprovalFilter, "limit"> & {
    readonly state?: readonly StateName[];
    readonly all?: boolean;
    readonly run?: readonly string[];
    readonly workflowExecution?: readonly string[];
  };
type DecisionFlags = ClientFlags & Json & Partial<Omit<DecisionArguments, "approved">>;

/** Declares `chartroom approval ...`. */
export function declareApproval(program: Command, terminal: Terminal): void {
  const approval = program
    .command("approval")
    .description("list and decide the approvals that agents and workflows wait for");
  withSettings(
    approval
      .command("list")
      .description("list pending approvals, newest first")
      .addOption(
        new Option("--state <states...>", "only approvals in these states").choices([...STATE_NAMES]),
      )
      .option("--all", "approvals in any state")
      .option("--run <ids...>", "only approvals requested by these agent runs")
      .option("--workflow-execution <ids...>", "only approvals requested by these workflow executions")
      .option(
        "--limit <number>",
        "maximum number of approvals to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.Approval")
      .action(async ({ state, all, run, workflowExecution, limit, json, ...flags }: ListFlags) => {
        if (all && state) throw new StartError("give one of --state and --all");
        const access = accessOf(flags, terminal);
        const { approvalsJson, approvalTable, listApprovals } = await loadApprovalCommands();
        const found = await listApprovals(access, {
          states: all ? [] : (state ?? ["pending"]),
          runs: run ?? [],
          workflowExecutions: workflowExecution ?? [],
          limit,
        });
        terminal.print(json ? approvalsJson(found) : approvalTable(found, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    approval
      .command("show")
      .description("show an approval: the request, who can decide, and the decision")
      .argument("<approval>", "id of the approval")
      .option("--json", "print a service.v1.Approval as JSON")
      .action(async (id: string, { json, ...flags }: ClientFlags & Json) => {
        const access = accessOf(flags, terminal);
        const { approvalJson, approvalText, getApproval } = await loadApprovalCommands();
        const found = await getApproval(access, id);
        terminal.print(json ? approvalJson(found) : approvalText(found));
      }),
    CLIENT_SETTINGS,
  );
  for (const [name, approved] of [
    ["approve", true],
    ["deny", false],
  ] as const) {
    const command = approval
      .command(name)
      .description(approved ? "approve a request" : "deny a request")
      .argument("<approval>", "id of the approval");
    withSettings(
      decisionOptions(command, approved).action(async (id: string, { json, ...flags }: DecisionFlags) => {
        const access = accessOf(flags, terminal);
        const { decideApproval } = await loadApprovalCommands();
        await tell(terminal, await decideApproval(access, id, decisionOf(flags, approved)), json);
      }),
      CLIENT_SETTINGS,
    );
  }
}

/** Declares `chartroom run approve`. @param run the command `chartroom run` */
export function declareRunApprove(run: Command, terminal: Terminal): void {
  const command = run
    .command("approve")
    .description("show the request that a run waits for, and approve it")
    .argument("<run>", "id of the run")
    .option("--yes", "do not ask for confirmation");
  withSettings(
    decisionOptions(command, true).action(
      async (id: string, { json, yes = false, ...flags }: DecisionFlags & { readonly yes?: boolean }) => {
        const access = accessOf(flags, terminal);
        const { approvalOfRun, approvalText, confirm, decideApproval } = await loadApprovalCommands();
        const isSeen = yes || flags.digest !== undefined;
        if (!isSeen && !terminal.input.isTTY)
          throw new StartError("give --digest with that of what you have looked at, or --yes");
        const found = await approvalOfRun(access, id, flags.digest);
        if (!isSeen) {
          terminal.output.write(`${approvalText(found)}\n`);
          if (!(await confirm(terminal, "Approve it? [y/N] ")))
            throw new StartError(`nothing was decided; chartroom approval deny ${found.id} denies it`);
        }
        const decision = { ...decisionOf(flags, true), digest: found.digest };
        await tell(terminal, await decideApproval(access, found.id, decision), json);
        const { lostTurnNote } = await import("../client/run/run.ts");
        const note = await lostTurnNote(access, id, found);
        if (note !== "") terminal.printError(note);
      },
    ),
    CLIENT_SETTINGS,
  );
}

function decisionOptions(command: Command, approved: boolean): Command {
  command
    .option(
      "--digest <digest>",
      "decide only if the request still has this digest, which `approval show` prints",
    )
    .option("--option <id>", "option to choose, if the request offers options")
    .option("--reason <text>", "reason to show to the requester and to other people")
    .option("--json", "print the decided approval as JSON, a service.v1.Approval");
  return approved ? command.option("--answer <json>", "answer to a question, as a JSON object") : command;
}

function decisionOf({ digest, option, answer, reason }: DecisionFlags, approved: boolean): DecisionArguments {
  return { approved, digest, option, answer, reason };
}

async function tell(terminal: Terminal, approval: Approval, json = false): Promise<void> {
  const { approvalJson, decisionText } = await loadApprovalCommands();
  terminal.print(json ? approvalJson(approval) : decisionText(approval));
}
