import { AgentExecutionFailureReason } from "#gen/service/v1/agent_pb.js";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { WorkflowExecutionConclusion as Conclusion } from "#gen/service/v1/workflow_pb.js";
import type { Moment } from "../../../domain/access/event-subscription/event-kinds.ts";
import { findAgentExecution } from "../../../store/agent/agent-execution.ts";
import { findRecordedDiff, type RecordedDiff } from "../../../store/record/audit-log.ts";
import type { EventRow } from "../../../store/record/event.ts";
import type { Reader, Scope } from "../../../store/store.ts";
import { findExecution } from "../../../store/workflow/workflow-execution.ts";

/**
 * Returns the moment of a resource that an event tells of; undefined for any other change. Which phase was reached is
 * read from the record of the change, and whether what has ended had failed, from the resource as it is.
 */
export async function findMoment(db: Reader, scope: Scope, event: EventRow): Promise<Moment | undefined> {
  const { resourceType, operation } = event;
  if (resourceType === ResourceType.APPROVAL)
    return operation === ResourceOperation.CREATE ? "approval.asked" : undefined;
  if (operation !== ResourceOperation.UPDATE) return undefined;
  if (resourceType === ResourceType.AGENT_EXECUTION) return momentOfRun(db, scope, event);
  if (resourceType === ResourceType.WORKFLOW_EXECUTION) return momentOfExecution(db, scope, event);
  return undefined;
}

async function momentOfRun(db: Reader, scope: Scope, event: EventRow): Promise<Moment | undefined> {
  const diff = await findRecordedDiff(db, scope, event.sequence);
  if (hasReached(diff, "PHASE_WAITING_FOR_INPUT")) return "agent_execution.waits_for_input";
  if (!hasReached(diff, "PHASE_STOPPED")) return undefined;
  const status = (await findAgentExecution(db, scope, event.resourceId))?.execution.status;
  const isFailed =
    status !== undefined &&
    (status.failureReason !== AgentExecutionFailureReason.UNSPECIFIED || status.failureMessage !== "");
  return isFailed ? "agent_execution.failed" : undefined;
}

async function momentOfExecution(db: Reader, scope: Scope, event: EventRow): Promise<Moment | undefined> {
  const diff = await findRecordedDiff(db, scope, event.sequence);
  if (!hasReached(diff, "WORKFLOW_EXECUTION_PHASE_COMPLETED")) return undefined;
  const stored = await findExecution(db, scope, event.resourceId);
  const conclusion = stored?.toResponse().status?.conclusion;
  return conclusion === Conclusion.FAILED || conclusion === Conclusion.PARTIALLY_FAILED
    ? "workflow_execution.failed"
    : undefined;
}

const hasReached = (diff: RecordedDiff, phase: string): boolean => diff["status.phase"]?.[1] === phase;
