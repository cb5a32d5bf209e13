import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { AgentExecution_Status_OutputValue } from "#gen/service/v1/agent_pb.js";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import {
  WorkflowExecutionAction_Status_StepStatus_StepPhase as Phase,
  type WorkflowExecutionAction_Status_StepStatus,
  WorkflowExecutionAction_Status_StepStatusSchema,
  type WorkflowStep,
  type WorkflowStep_Report_OutputSpec,
} from "#gen/service/v1/workflow_pb.js";
import { type DomainError, phaseUnsuitable, valueUnusable } from "../../error.ts";
import { parseOutput } from "../report-output.ts";
import { workflowError } from "./workflow-error.ts";
import { transitionStep } from "./workflow-transitions.ts";

type StepStatus = WorkflowExecutionAction_Status_StepStatus;

/** A runner's report of one step. */
export interface StepTransition {
  /** Index of the step in its action, from 0. */
  readonly stepIndex: number;
  readonly state: "running" | "done" | "failed";
  /** When it happened, in milliseconds since 1970 UTC; by default when it is reported. */
  readonly at?: number;
  /** Failure of the step; `step_failed` without one. */
  readonly error?: WorkflowError;
  /** Page of the pull request that it opened. */
  readonly pullRequestUrl?: string;
  /** For a report step that is done: the printed text of each output, by its key. */
  readonly outputs?: Readonly<Record<string, Uint8Array>>;
}

/** Values by the keys of a report's outputs. */
export type OutputValues = Record<string, AgentExecution_Status_OutputValue>;

/** Returns whether agents carry out any of the steps. */
export function needAgents(steps: readonly WorkflowStep[]): boolean {
  return steps.some(({ step }) => {
    if (step.case !== "report") return step.case === "agent";
    return step.value.outputs.some(({ extraction }) => extraction.case === "prompt");
  });
}

/** Returns the step statuses of an action that has not begun, or never will: all in the given phase. */
export function stepStatusesIn(phase: Phase.PENDING | Phase.CANCELLED, count: number): StepStatus[] {
  return Array.from({ length: count }, (_, stepIndex) =>
    create(WorkflowExecutionAction_Status_StepStatusSchema, { stepIndex, phase }),
  );
}

/**
 * Applies a runner's report of one step, in place. A repeated report changes nothing. A report step
 * is done only when its outputs can be read and are accepted; otherwise it fails.
 * @param now milliseconds since 1970 UTC
 * @returns the values of a report step that is done now
 * @throws DomainError VALUE_UNUSABLE for a step that the action does not have; PHASE_UNSUITABLE for
 * a transition that the step cannot make
 */
export function advanceStep(
  statuses: readonly StepStatus[],
  steps: readonly WorkflowStep[],
  transition: StepTransition,
  now: number,
): OutputValues | undefined {
  const status = statuses[transition.stepIndex];
  const step = steps[transition.stepIndex];
  if (!status || !step) {
    throw valueUnusable("steps[].stepIndex", `the action has ${statuses.length} steps, numbered from 0`);
  }
  if (step.step.case === "approval") {
    const phase = Phase[status.phase] ?? "";
    throw phaseUnsuitable("step", phase, `step ${transition.stepIndex} is an approval: people decide it`);
  }
  if (isAlreadyReported(status.phase, transition.state)) return undefined;
  if (transition.state === "running") {
    requireInOrder(statuses, transition.stepIndex);
    status.phase = transitionStep(status.phase, "begin");
    status.startedAt = timestampFromMs(now);
    return undefined;
  }
  if (transition.state === "failed") {
    failStep(status, transition.error ?? workflowError("step_failed", "the step failed"), now);
    return undefined;
  }
  const read =
    step.step.case === "report" ? readOutputs(step.step.value.outputs, transition.outputs ?? {}) : undefined;
  if (read && "error" in read) {
    failStep(status, read.error, now);
    return undefined;
  }
  status.phase = transitionStep(status.phase, "finish");
  status.finishedAt = timestampFromMs(now);
  status.pullRequestUrl = transition.pullRequestUrl ?? "";
  return read?.values;
}

/** Ends the steps that have not ended, in place: waiting steps never run. */
export function cancelSteps(statuses: readonly StepStatus[], now: number): void {
  for (const status of statuses) {
    if (status.phase !== Phase.PENDING && status.phase !== Phase.RUNNING) continue;
    if (status.phase === Phase.RUNNING) status.finishedAt = timestampFromMs(now);
    status.phase = transitionStep(status.phase, "cancel");
  }
}

/** Resets the steps of a lost attempt to pending, in place; none of them may have failed. */
export function resetSteps(statuses: readonly StepStatus[]): void {
  for (const status of statuses) {
    if (status.phase === Phase.PENDING) continue;
    status.phase = transitionStep(status.phase, "lose");
    status.pullRequestUrl = "";
    delete status.startedAt;
    delete status.finishedAt;
  }
}

/** Returns the failures of steps, in their order. */
export function stepErrors(statuses: readonly StepStatus[]): WorkflowError[] {
  return statuses.flatMap(({ error }) => error ?? []);
}

/** Returns the time of the latest transition of any step, in milliseconds since 1970 UTC; 0 before the first. */
export function lastMoveOf(statuses: readonly StepStatus[]): number {
  const times = statuses.flatMap(({ startedAt, finishedAt }) => [startedAt ?? [], finishedAt ?? []].flat());
  return Math.max(0, ...times.map(timestampMs));
}

export function areAllDone(statuses: readonly StepStatus[]): boolean {
  return statuses.every(({ phase }) => phase === Phase.DONE);
}

/**
 * Returns whether the end of a step was reported before. A runner may repeat that report; the first
 * one counts.
 */
function isAlreadyReported(phase: Phase, state: StepTransition["state"]): boolean {
  if (phase === Phase.DONE) return state !== "failed";
  if (phase === Phase.FAILED) return true;
  return phase === Phase.RUNNING && state === "running";
}

function requireInOrder(statuses: readonly StepStatus[], index: number): void {
  const before = statuses.slice(0, index).find(({ phase }) => phase !== Phase.DONE);
  if (!before) return;
  const phase = Phase[before.phase] ?? "";
  throw phaseUnsuitable("step", phase, `step ${before.stepIndex} is ${phase}: steps run in their order`);
}

/** Fails a step in place. @param now milliseconds since 1970 UTC */
export function failStep(status: StepStatus, error: WorkflowError, now: number): void {
  status.phase = transitionStep(status.phase, "fail");
  status.finishedAt = timestampFromMs(now);
  status.error = error;
  status.failureMessage = error.message;
}

function readOutputs(
  specs: readonly WorkflowStep_Report_OutputSpec[],
  printed: Readonly<Record<string, Uint8Array>>,
): { values: OutputValues } | { error: WorkflowError } {
  const values: OutputValues = {};
  for (const spec of specs) {
    const bytes = printed[spec.key];
    if (bytes === undefined) {
      return {
        error: workflowError("output_missing", `output ${spec.key} was not given`, { output: spec.key }),
      };
    }
    const read = parseOutput(spec, new TextDecoder().decode(bytes));
    if ("problem" in read) {
      return { error: workflowError("output_invalid", read.problem, { output: spec.key }) };
    }
    values[spec.key] = read.value;
  }
  return { values };
}

/**
 * Requires that an action has a step.
 * @param path JSON path of the piece of log that names the step
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireStepIndex(stepIndex: number, stepCount: number, path: string): void {
  if (stepIndex < stepCount) return;
  throw valueUnusable(`${path}.stepIndex`, `the action has ${stepCount} steps, numbered from 0`);
}

/** Requires that a piece of log continues the stored log without a gap. @throws DomainError VALUE_UNUSABLE */
export function requireNoGap(follows: boolean, path: string): void {
  if (follows) return;
  throw valueUnusable(`${path}.offset`, "the piece leaves a gap: send what comes before it first");
}

/** Returns the error for a report of a step without its state; `path` is that of the step. */
export function stepStateMissing(path: string): DomainError {
  return valueUnusable(`${path}.state`, "say whether the step runs, is done or has failed");
}
