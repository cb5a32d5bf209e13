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

/** A push that people must approve, as a runner reports it. */
export type StepPush = Pick<Push, "remote" | "commit" | "base">;

/** A step in progress. */
export interface StepRun {
  readonly assignment: Assignment;
  readonly action: ActionWork;
  /** The index of the step in the action, from 0. */
  readonly stepIndex: number;
  readonly workspace: Workspace;
  /** The checkouts in the workspace; the steps work in the first one. */
  readonly checkouts: readonly Checkout[];
  /** The folder of the first repository, or the tree when there is none. */
  readonly folder: string;
  /** The complete environment of its commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs its commands inside the isolation. */
  readonly runCommand: RunCommand;
  /** Receives the output of its commands. */
  readonly log: StepLog;
  /** Ends the step when aborted. */
  readonly signal: AbortSignal;
}

/** The results of a step that is done or waits for an approval. */
export interface StepResult {
  readonly pullRequestUrl?: string;
  /** The printed value of each output, by its key. */
  readonly outputs?: Readonly<Record<string, Uint8Array>>;
  /** Its agents, which the service stops once the step is reported as done. */
  readonly agentExecutionIds?: readonly string[];
  /** Warnings for people about a step that is done. */
  readonly warnings?: readonly WorkFailure[];
  /** The push that people must approve before the step continues; the step is not done. */
  readonly asksToPush?: StepPush;
  /** The digest of the approved push that the step carried out; empty if it needed no approval. */
  readonly approvedPushDigest?: string;
}

/**
 * Runs a step to its end.
 *
 * @throws WorkFailure when the step fails
 * @throws the reason of its signal when the signal ended the step
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

async function runTask(run: StepRun, { command }: WorkflowStep_Task): Promise<StepResult> {
  await runShell(run, { name: "the command", command });
  return {};
}

/** The contract's maximum size of an output, in bytes (ReportProgressRequest.StepProgress.outputs). */
const MAX_VALUE_BYTES = 16_386;

/**
 * Collects the outputs of a report in order: the output of commands and the answers of agents. The service parses and
 * checks them.
 *
 * @throws WorkFailure output_too_long, and the failures of commands and agents
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

/** Trims the white space that agents put around an answer. */
function trimmedValue(answer: string, key: string): Buffer {
  const value = Buffer.from(answer.trim());
  if (value.length > MAX_VALUE_BYTES) throw tooLong(`the agent asked for the output ${key} answered`);
  return value;
}

function tooLong(said: string): WorkFailure {
  return new WorkFailure("output_too_long", `${said} more than ${MAX_VALUE_BYTES} bytes`);
}

/** Maximum output of a command. The service stores 1 MiB of a step's log, so a command that prints more is runaway. */
const MAX_OUTPUT_BYTES = 16 * 1_024 * 1_024;

/**
 * Merges standard error into standard output, so that the log has them in order. On the same line as the command, to keep
 * the command's line numbers.
 */
const JOINED_OUTPUTS = "exec 2>&1; ";

interface ShellCommand {
  /** A noun phrase that can begin a sentence. */
  readonly name: string;
  readonly command: string;
  /** Number of bytes of standard output to return; none when absent. */
  readonly keepBytes?: number;
}

/**
 * Runs a command with sh in the step's folder and writes its masked output to the step's log.
 *
 * @returns its standard output, up to `keepBytes`, unmasked
 * @throws WorkFailure command_failed, output_limit_exceeded, command_not_started
 * @throws the reason of the step's signal when the signal ended the command
 */
async function runShell(
  { assignment: { secrets }, folder, environment, runCommand, log, signal }: StepRun,
  { name, command, keepBytes = 0 }: ShellCommand,
): Promise<Buffer> {
  const masks = { stdout: secrets.stream(), stderr: secrets.stream() };
  let printedBytes = 0;
  const result = await runCommand({
    program: "sh",
    // Without the dashes, sh would parse a command that begins with one as options.
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
