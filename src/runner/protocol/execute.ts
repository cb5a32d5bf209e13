import type { Work } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { executeAgent } from "../agent/agent-work.ts";
import { executeAction } from "../steps/action-work.ts";
import { executeEnvironment } from "../steps/environment-work.ts";
import { executePrebuild, executePrebuildRemoval } from "../steps/prebuild-work.ts";
import { type Assignment, newAssignment, type RunnerTools } from "./assignment.ts";
import { failureReportOf, logFailure } from "./failure-report.ts";
import { type Interruption, type Lease, WorkInterrupted } from "./lease.ts";
import { WorkFailure } from "./work-failure.ts";
import type { WorkEnd } from "./work-reports.ts";

/** The contract's maximum for warnings at the end of work (FinishWorkRequest.warnings). */
const MAX_WARNINGS = 10;

/**
 * Executes a piece of work and reports its result to the service, unless the lease was lost. Never rejects: errors
 * are reported and logged.
 */
export async function execute(tools: RunnerTools, work: Work, lease: Lease): Promise<void> {
  const facts = logFieldsOf(work);
  tools.log.info(facts, "work taken");
  const startedAt = performance.now();
  const assignment = newAssignment(tools, work, lease);
  const end = await runToEnd(assignment, facts);
  const durationMs = Math.round(performance.now() - startedAt);
  try {
    if (end) await finish(assignment, end);
  } catch (error) {
    if (!lease.isLost) {
      const problem = assignment.secrets.maskText((error as Error).message);
      tools.log.warn({ ...facts, problem }, "the end of work was refused");
      lease.giveUp();
      return;
    }
  }
  const outcome = lease.isLost ? "lost" : Outcome[end?.outcome ?? Outcome.UNSPECIFIED].toLowerCase();
  const reason = end?.failure?.reason;
  tools.log.info({ ...facts, outcome, ...(reason && { reason }), durationMs }, "work ended");
}

/** Finishes the work. If the service rejects the result, reports a failure with its reason. */
async function finish({ lease, secrets }: Assignment, end: WorkEnd): Promise<void> {
  try {
    await lease.finish(end);
  } catch (error) {
    if (lease.isLost || end.outcome !== Outcome.DONE) throw error;
    await lease.finish({ ...end, outcome: Outcome.FAILED, failure: failureReportOf(error, secrets) });
  }
}

/** Returns the log fields of a piece of work. */
function logFieldsOf({ leaseId, attempt, work }: Work): Record<string, unknown> {
  return { work: work.case, ...subjectOf(work), lease: leaseId, attempt };
}

function subjectOf(work: Work["work"]): Record<string, unknown> {
  switch (work.case) {
    case "environment":
      return { environment: work.value.environment?.id };
    case "action":
      return { action: work.value.actionId, environment: work.value.environment?.id };
    case "agent":
      return { run: work.value.agentExecution?.id, environment: work.value.environment?.id };
    case "prebuild":
    case "prebuildRemoval":
      return { prebuild: work.value.prebuildId };
    default:
      return {};
  }
}

/** Executes the work; returns undefined when nothing may be reported. */
async function runToEnd(assignment: Assignment, facts: object): Promise<WorkEnd | undefined> {
  const { lease, secrets, tools } = assignment;
  try {
    const end = (await executeWork(assignment)) ?? { outcome: Outcome.DONE };
    return { ...end, warnings: warningsOf(assignment) };
  } catch (error) {
    if (lease.isLost) return undefined;
    // Work that failed by itself counts as failed, even if the failure also stopped it.
    if (error instanceof WorkInterrupted) return endOfInterrupted(assignment, error.interruption);
    return {
      outcome: Outcome.FAILED,
      failure: logFailure(tools.log, facts, error, secrets),
      warnings: warningsOf(assignment),
    };
  }
}

function endOfInterrupted(assignment: Assignment, interruption: Interruption): WorkEnd {
  if (interruption === "stop") return { outcome: Outcome.STOPPED, warnings: warningsOf(assignment) };
  // The next runner starts from the beginning and finds its own warnings.
  return { outcome: Outcome.RELEASED };
}

function warningsOf({ secrets, warnings }: Assignment): NonNullable<WorkEnd["warnings"]> {
  return warnings.slice(0, MAX_WARNINGS).map((warning) => failureReportOf(warning, secrets));
}

async function executeWork(assignment: Assignment): Promise<WorkEnd | undefined> {
  if (assignment.work.work.case === "action") {
    return executeAction(assignment, assignment.work.work.value);
  }
  await executeOther(assignment);
  return undefined;
}

async function executeOther(assignment: Assignment): Promise<void> {
  const { work } = assignment.work;
  switch (work.case) {
    case "environment":
      return executeEnvironment(assignment, work.value);
    case "agent":
      return executeAgent(assignment, work.value);
    case "prebuild":
      return executePrebuild(assignment, work.value);
    case "prebuildRemoval":
      return executePrebuildRemoval(assignment, work.value);
    default:
      throw new WorkFailure("work_unknown", "the work is of a kind that this runner does not know");
  }
}
