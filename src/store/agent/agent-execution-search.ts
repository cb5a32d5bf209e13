import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentExecution_Status_Subagent as Subagent,
  AgentExecution_Status_SubagentSchema as SubagentSchema,
} from "#gen/service/v1/agent_pb.js";
import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope } from "../store.ts";
import { type StoredAgentExecution, storedOfRow } from "./agent-execution.ts";
import type { AgentExecutionTable } from "./agent-schema.ts";

/** The conditions for executions that have not stopped; an omitted field restricts nothing. */
export interface OpenAgentExecutions {
  readonly accountId?: string;
  readonly creatorId?: string;
  /** Id of the runner that the request named. */
  readonly runnerId?: string;
  readonly parentId?: string;
}

interface EnvironmentKey {
  readonly organizationId: string;
  readonly environmentId: string;
}

const selectAllOpenIn = prepared<EnvironmentKey, AgentExecutionTable>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("agent_execution")
      .selectAll()
      .where("environment_id", "=", environmentId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .where("stopped_at", "is", null)
      .orderBy("id"),
);

/** Returns the executions in an environment that have not stopped, oldest first. */
export async function findOpenAgentExecutionsIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<StoredAgentExecution[]> {
  return (await selectAllOpenIn(db, { organizationId, environmentId })).map(storedOfRow);
}

const selectOpenOfAction = prepared<{ organizationId: string; actionId: string }, AgentExecutionTable>(
  (db, { organizationId, actionId }) =>
    db
      .selectFrom("agent_execution")
      .selectAll()
      .where("action_id", "=", actionId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .where("stopped_at", "is", null)
      .where("step_key", "is not", null)
      .orderBy("id"),
);

/** Returns the executions that carry out steps of an action and have not stopped, oldest first. */
export async function findOpenStepAgents(
  db: Reader,
  { organizationId }: Scope,
  actionId: string,
): Promise<StoredAgentExecution[]> {
  return (await selectOpenOfAction(db, { organizationId, actionId })).map(storedOfRow);
}

/** Returns the ids of the executions that have not stopped, oldest first. */
export async function findOpenAgentExecutionIds(
  db: Reader,
  scope: Scope,
  asked: OpenAgentExecutions,
): Promise<string[]> {
  const rows = await openOf(db, scope, asked).select("id").execute();
  return rows.map(({ id }) => id);
}

function openOf(db: Reader, scope: Scope, asked: OpenAgentExecutions) {
  let query = builderOf(db)
    .selectFrom("agent_execution")
    .where("organization_id", "=", scope.organizationId)
    .where("stopped_at", "is", null);
  if (asked.accountId !== undefined) query = query.where("account_id", "=", asked.accountId);
  if (asked.creatorId !== undefined) query = query.where("creator_id", "=", asked.creatorId);
  if (asked.runnerId !== undefined) query = query.where("runner_id", "=", asked.runnerId);
  if (asked.parentId !== undefined) query = query.where("parent_id", "=", asked.parentId);
  return query.orderBy("id");
}

const selectOpenIn = prepared<EnvironmentKey, { id: string }>((db, { organizationId, environmentId }) =>
  db
    .selectFrom("agent_execution")
    .select("id")
    .where("environment_id", "=", environmentId)
    .where(unindexed("agent_execution.organization_id"), "=", organizationId)
    .where("stopped_at", "is", null)
    .limit(1),
);

/** Returns whether an execution that has not stopped works in an environment. */
export async function hasOpenAgentExecution(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<boolean> {
  return (await selectOpenIn(db, { organizationId, environmentId })).length > 0;
}

const selectForCreatedEnvironment = prepared<EnvironmentKey, { id: string }>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("agent_execution")
      .select("id")
      .where("environment_id", "=", environmentId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .where("made_environment", "=", 1)
      .limit(1),
);

/** Returns whether an environment was created for an agent execution. */
export async function isCreatedForAgent(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<boolean> {
  return (await selectForCreatedEnvironment(db, { organizationId, environmentId })).length > 0;
}

const selectOpenChildCount = prepared<{ parentId: string }, { count: number }>((db, { parentId }) =>
  db
    .selectFrom("agent_execution")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("parent_id", "=", parentId)
    .where("stopped_at", "is", null),
);

/** Returns the number of sub-agents of an execution that have not stopped. */
export async function countOpenSubagents(db: Reader, parentId: Handle<"agent_execution">): Promise<number> {
  const [row] = await selectOpenChildCount(db, { parentId });
  return row?.count ?? 0;
}

const selectByStartKey = prepared<{ parentId: string; startKey: string }, AgentExecutionTable>(
  (db, { parentId, startKey }) =>
    db
      .selectFrom("agent_execution")
      .selectAll()
      .where("parent_id", "=", parentId)
      .where("start_key", "=", startKey),
);

/**
 * Returns the sub-agent that an execution started under its own start key. The caller must hold the
 * lease of the parent.
 */
export async function findSubagentByKey(
  db: Reader,
  parentId: Handle<"agent_execution">,
  startKey: string,
): Promise<StoredAgentExecution | undefined> {
  const [row] = await selectByStartKey(db, { parentId, startKey });
  return row && storedOfRow(row);
}

const selectByStepKey = prepared<
  { organizationId: string; actionId: string; stepKey: string },
  AgentExecutionTable
>((db, { organizationId, actionId, stepKey }) =>
  db
    .selectFrom("agent_execution")
    .selectAll()
    .where("action_id", "=", actionId)
    .where("step_key", "=", stepKey)
    .where(unindexed("agent_execution.organization_id"), "=", organizationId),
);

/**
 * Returns the execution that was started for a step of an action. The caller must hold the lease of
 * the action.
 */
export async function findStepAgent(
  db: Reader,
  { organizationId }: Scope,
  actionId: string,
  stepKey: string,
): Promise<StoredAgentExecution | undefined> {
  const [row] = await selectByStepKey(db, { organizationId, actionId, stepKey });
  return row && storedOfRow(row);
}

/** Returns the sub-agents of executions, by the id of the parent, each list oldest first. */
export async function findSubagents(
  db: Reader,
  scope: Scope,
  parentIds: readonly string[],
): Promise<ReadonlyMap<string, readonly Subagent[]>> {
  if (parentIds.length === 0) return new Map();
  const rows = await builderOf(db)
    .selectFrom("agent_execution")
    .selectAll()
    // With the organization's index the engine would read all executions of the organization.
    .where(unindexed("agent_execution.organization_id"), "=", scope.organizationId)
    .where("parent_id", "in", parentIds)
    .where("removed_at", "is", null)
    .orderBy("id")
    .execute();
  const groups = Map.groupBy(rows, ({ parent_id }) => parent_id ?? "");
  return new Map([...groups].map(([parentId, children]) => [parentId, children.map(subagentOfRow)]));
}

function subagentOfRow(row: Omit<AgentExecutionTable, "removed_at">): Subagent {
  const { execution, progress } = storedOfRow(row);
  const { metadata, status } = execution;
  return create(SubagentSchema, {
    id: execution.id,
    parentId: metadata?.parentExecutionId ?? "",
    name: metadata?.name ?? "",
    currentActivity: progress.currentActivity,
    statusMessage: status?.failureMessage || (status?.warningMessage ?? ""),
    ...(status && { phase: status.phase }),
    ...(metadata?.createdAt && { createdAt: metadata.createdAt }),
    updatedAt: timestampFromMs(row.changed_at),
  });
}

const selectHandle = prepared<{ id: string; organizationId: string }, { id: Handle<"agent_execution"> }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("agent_execution")
      .select("id")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId)
      .where("removed_at", "is", null),
);

/** Returns the handle of an execution, for reads of what belongs to it. */
export async function findAgentExecutionHandle(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<Handle<"agent_execution"> | undefined> {
  const [row] = await selectHandle(db, { id, organizationId });
  return row?.id;
}

const selectSession = prepared<{ sessionId: string; organizationId: string }, { id: string }>(
  (db, { sessionId, organizationId }) =>
    db
      .selectFrom("agent_execution")
      .select("id")
      .where("organization_id", "=", organizationId)
      .where("session_id", "=", sessionId)
      .unionAll(
        db
          .selectFrom("environment")
          .select("id")
          .where("organization_id", "=", organizationId)
          .where("session_id", "=", sessionId),
      )
      .limit(1),
);

/** Returns whether an agent execution or environment of the organization belongs to a session. */
export async function hasSession(db: Reader, scope: Scope, sessionId: string): Promise<boolean> {
  const { organizationId } = scope;
  return (await selectSession(db, { sessionId, organizationId })).length > 0;
}
