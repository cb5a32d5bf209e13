import type { ActionWork } from "#gen/runner/v1/work_pb.js";
import type { FinishWorkRequest_StepPush as Push } from "#gen/runner/v1/work_service_pb.js";
import type { WorkflowStep, WorkflowStep_Report, WorkflowStep_Task } from "#gen/service/v1/workflow_pb.js";
import { askAgent, runAgent } from "../agent/step-agent.ts";
import type { Checkout } from "../git/git-checkout.ts";
import { describeExit, type RunCommand } from "../process/command.ts";
import type { Assignment } from "../protocol/assignment.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { StepLog } from "./step-log.ts";
import { openPullRequest } from "./step-pull-request.ts";
import type { Workspace } from "./workspace.ts";

/** The facts of a push that people must approve, as a runner reports them. */
export type StepPush = Pick<Push, "remote" | "commit" | "base">;

/** A step in progress. */
export interface StepRun {
  readonly assignment: Assignment;
  readonly action: ActionWork;
  /** The index in the action, from 0. */
  readonly stepIndex: number;
  readonly workspace: Workspace;
  /** The checkouts in the workspace; the steps work in the first one. */
  readonly checkouts: readonly Checkout[];
  /** The folder of the first repository, or of the empty tree. */
  readonly folder: string;
  /** The complete environment of its commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs its commands, kept in. */
  readonly runCommand: RunCommand;
  /** Receives the output of its commands. */
  readonly log: StepLog;
  /** Ends the step when aborted. */
  readonly signal: AbortSignal;
}

/** The results of a step that is done, or has to wait for people. */
export interface StepResult {
  readonly pullRequestUrl?: string;
  /** The printed value of each output, by its key. */
  readonly outputs?: Readonly<Record<string, Uint8Array>>;
  /** Its agents, which the service stops once the step is reported as done. */
  readonly agentExecutionIds?: readonly string[];
  /** Warnings for people although it is done. */
  readonly warnings?: readonly WorkFailure[];
  /** The push that people must approve before the step goes on: it is not done. */
  readonly asksToPush?: StepPush;
  /** The digest of the approval whose push it carried out; empty where none was needed. */
  readonly approvedPushDigest?: string;
}

/**
 * Runs one step to its end.
 *
 * @throws WorkFailure the failure of the step
 * @throws the reason of its signal when that ended it
 */
export function runStep(run: StepRun, { step }: WorkflowStep): Promise<StepResult> {
  switch (step.case) {
    case "task":
      return runTask(run, step.value);
    case "pullRequest":
      return openPullRequest(run, step.value);
    case "report":
      return collectOutputs(run, step.value);
    case "agent":
      return runAgent(run);
    default:
      throw new WorkFailure("step_unknown", "the step is of a kind that this runner does not know");
  }
}

/** Runs the command of a task. */
async function runTask(run: StepRun, { command }: WorkflowStep_Task): Promise<StepResult> {
  await runShell(run, { name: "the command", command });
  return {};
}

/**
 * Maximum of the contract for one output
 * (ReportProgressRequest.StepProgress.outputs): more would be refused.
 */
const MAX_VALUE_BYTES = 16_386;

/**
 * Collects the outputs of a report, in their order: the output of commands and
 * the answers of agents. The service parses and checks them.
 *
 * @throws WorkFailure output_too_long, and as commands and agents fail
 */
export async function collectOutputs(
  run: StepRun,
  { outputs: specs }: WorkflowStep_Report,
): Promise<StepResult> {
  const outputs: Record<string, Uint8Array> = {};
  const agentExecutionIds: string[] = [];
  for (const { key, extraction } of specs) {
    if (extraction.case === "prompt") {
      const { text, agentExecutionId } = await askAgent(run, key);
      outputs[key] = trimmedValue(text, key);
      agentExecutionIds.push(agentExecutionId);
    } else {
      const name = `the command of the output ${key}`;
      outputs[key] = await commandOutput(run, { name, command: extraction.value ?? "" });
    }
  }
  return { outputs, agentExecutionIds };
}

async function commandOutput(run: StepRun, command: ShellCommand): Promise<Buffer> {
  const value = await runShell(run, { ...command, keepBytes: MAX_VALUE_BYTES + 1 });
  if (value.length > MAX_VALUE_BYTES) throw tooLong(`${command.name} printed`);
  return run.assignment.secrets.mask(value);
}

/** Trims an answer: agents surround it with white space, which is not part of the value. */
function trimmedValue(answer: string, key: string): Buffer {
  const value = Buffer.from(answer.trim());
  if (value.length > MAX_VALUE_BYTES) throw tooLong(`the agent asked for the output ${key} answered`);
  return value;
}

function tooLong(said: string): WorkFailure {
  return new WorkFailure("output_too_long", `${said} more than ${MAX_VALUE_BYTES} bytes`);
}

/** The service stores 1 MiB of a step's log: a command that prints this much more is out of control. */
const MAX_OUTPUT_BYTES = 16 * 1_024 * 1_024;

/** Joins both outputs, so that the log has them in their order. In the command's first line, so that its lines keep their numbers. */
const JOINED_OUTPUTS = "exec 2>&1; ";

interface ShellCommand {
  /** A noun phrase that can begin a sentence. */
  readonly name: string;
  readonly command: string;
  /** The number of bytes of standard output that are returned; none when absent. */
  readonly keepBytes?: number;
}

/**
 * Runs a command by sh in the step's folder, and sends its output to the step's
 * log, without secrets.
 *
 * @returns its standard output, up to `keepBytes`, unmasked
 * @throws WorkFailure command_failed, output_limit_exceeded, command_not_started
 * @throws the reason of the step's signal when that ended it
 */
async function runShell(
  { assignment: { secrets }, folder, environment, runCommand, log, signal }: StepRun,
  { name, command, keepBytes = 0 }: ShellCommand,
): Promise<Buffer> {
  const masks = { stdout: secrets.stream(), stderr: secrets.stream() };
  let printedBytes = 0;
  const result = await runCommand({
    program: "sh",
    // Without the dashes, a command that begins with one would be read as options.
    args: ["-c", "--", keepBytes > 0 ? command : `${JOINED_OUTPUTS}${command}`],
    folder,
    environment,
    keepBytes,
    signal,
    async onOutput(bytes, stream) {
      printedBytes += bytes.length;
      if (printedBytes > MAX_OUTPUT_BYTES) {
        throw new WorkFailure(
          "output_limit_exceeded",
          `${name} printed more than ${MAX_OUTPUT_BYTES} bytes, and was ended: send the rest to a file`,
        );
      }
      await log.write(masks[stream].write(bytes));
    },
  });
  for (const mask of Object.values(masks)) await log.write(mask.end());
  if (result.stopped) signal.throwIfAborted();
  if (result.exit !== 0) throw new WorkFailure("command_failed", `${name} ${describeExit(result)}`);
  return result.stdout;
}
