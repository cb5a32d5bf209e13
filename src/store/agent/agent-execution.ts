import { toJsonString } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type AgentExecution,
  AgentExecutionRole,
  AgentExecutionSchema,
  type TurnOptions,
  TurnOptionsSchema,
} from "#gen/service/v1/agent_pb.js";
import { hasStopped, phaseOfAgentExecution } from "../../domain/agent/agent-execution.ts";
import type { AgentProgress } from "../../domain/agent/agent-progress.ts";
import type { EventFacts } from "../../domain/event-facts.ts";
import { removeRoleAssignmentsOn } from "../identity/role-assignment.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Found, Reader, Scope, WriteTransaction } from "../store.ts";
import {
  columnsOfEarlier,
  type EarlierColumns,
  type EarlierExecution,
  earlierOfRow,
} from "./agent-conversation.ts";
import { progressOf, progressText } from "./agent-progress.ts";
import type { AgentExecutionTable } from "./agent-schema.ts";

/** An agent execution that was found or started in the scope of the caller. */
export type FoundAgentExecution = Found<AgentExecution, "agent_execution">;

/** An agent execution with the values that its body does not contain. */
export interface StoredAgentExecution {
  /**
   * Execution in the form for changes: services/agent/agent-execution-list.ts adds progress and
   * sub-agents to responses.
   */
  readonly execution: FoundAgentExecution;
  readonly progress: AgentProgress;
  /** Id of the account that it runs for; null for a service account's. */
  readonly accountId: string | null;
  /** Id of the environment that it works in, which may have been removed. */
  readonly environmentId: string;
  /** True when the environment was created for it. */
  readonly createdEnvironment: boolean;
  /** Id of the runner that the request named; null follows the environment. */
  readonly runnerId: string | null;
  /**
   * Attempt, step and output of the action that it works for, such as `1.0.`; null for an execution without an action.
   */
  readonly stepKey: string | null;
  readonly queueRevision: number;
  /** Number of the newest output block; 0 before the first. */
  readonly lastSequence: number;
  /** The conversation that it continues; undefined for one that begins a conversation. */
  readonly earlier: EarlierExecution | undefined;
}

/** The columns from which an execution is read. */
type StoredColumns =
  | "body"
  | "progress"
  | "account_id"
  | "environment_id"
  | "made_environment"
  | "runner_id"
  | "step_key"
  | "queue_revision"
  | "last_sequence"
  | EarlierColumns;

export function storedOfRow(row: Pick<AgentExecutionTable, StoredColumns>): StoredAgentExecution {
  return {
    execution: fromBody(AgentExecutionSchema, row.body) as FoundAgentExecution,
    progress: progressOf(row.progress),
    accountId: row.account_id,
    environmentId: row.environment_id,
    createdEnvironment: row.made_environment === 1,
    runnerId: row.runner_id,
    stepKey: row.step_key,
    queueRevision: row.queue_revision,
    lastSequence: row.last_sequence,
    earlier: earlierOfRow(row),
  };
}

const selectExecution = prepared<{ id: string; organizationId: string }, AgentExecutionTable>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("agent_execution")
      .selectAll()
      .where("id", "=", id)
      .where("organization_id", "=", organizationId)
      .where("removed_at", "is", null),
);

export async function findAgentExecution(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<StoredAgentExecution | undefined> {
  const [row] = await selectExecution(db, { id, organizationId: scope.organizationId });
  return row && storedOfRow(row);
}

/** The values of a new execution besides its body. */
export interface NewAgentExecution
  extends Pick<
    StoredAgentExecution,
    "progress" | "accountId" | "environmentId" | "createdEnvironment" | "runnerId" | "stepKey" | "earlier"
  > {
  /** Id of the project of its code context; null for another or none. */
  readonly projectId: string | null;
  /** Key chosen by the parent, which makes a repeated start idempotent; null for none. */
  readonly startKey: string | null;
  /** Options of its first turn; undefined for none. */
  readonly firstTurn: TurnOptions | undefined;
}

const insertRow = prepared<AgentExecutionTable, unknown>((db, row) =>
  db.insertInto("agent_execution").values({
    id: row.id,
    organization_id: row.organization_id,
    agent_id: row.agent_id,
    creator_id: row.creator_id,
    creator_principal: row.creator_principal,
    account_id: row.account_id,
    role: row.role,
    project_id: row.project_id,
    environment_id: row.environment_id,
    made_environment: row.made_environment,
    runner_id: row.runner_id,
    session_id: row.session_id,
    parent_id: row.parent_id,
    start_key: row.start_key,
    action_id: row.action_id,
    step_key: row.step_key,
    phase: row.phase,
    desired_phase: row.desired_phase,
    queue_revision: row.queue_revision,
    last_sequence: row.last_sequence,
    created_at: row.created_at,
    changed_at: row.changed_at,
    stopped_at: row.stopped_at,
    first_turn: row.first_turn,
    progress: row.progress,
    earlier_id: row.earlier_id,
    earlier_sequence: row.earlier_sequence,
    is_fork: row.is_fork,
    origins: row.origins,
    body: row.body,
  }),
);

/**
 * Writes a new execution, with an empty queue.
 * @returns the same execution
 */
export async function insertAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  execution: AgentExecution,
  facts: NewAgentExecution,
): Promise<FoundAgentExecution> {
  const { metadata, spec } = execution;
  const columns = changingColumns(execution);
  await insertRow(tx.db, {
    ...columns,
    id: execution.id,
    organization_id: scope.organizationId,
    agent_id: spec?.agentId ?? "",
    creator_id: metadata?.creator?.id ?? "",
    creator_principal: metadata?.creator?.principal ?? 0,
    account_id: facts.accountId,
    role: metadata?.role ?? AgentExecutionRole.DEFAULT,
    project_id: facts.projectId,
    environment_id: facts.environmentId,
    made_environment: facts.createdEnvironment ? 1 : 0,
    runner_id: facts.runnerId,
    session_id: metadata?.sessionId ?? "",
    parent_id: metadata?.parentExecutionId || null,
    start_key: facts.startKey,
    action_id: metadata?.workflowActionId || null,
    step_key: facts.stepKey,
    queue_revision: 0,
    last_sequence: facts.earlier?.sequence ?? 0,
    created_at: metadata?.createdAt ? timestampMs(metadata.createdAt) : tx.now,
    changed_at: tx.now,
    stopped_at: null,
    first_turn: facts.firstTurn ? toJsonString(TurnOptionsSchema, facts.firstTurn) : null,
    progress: progressText(facts.progress),
    ...columnsOfEarlier(facts.earlier),
  });
  for (const [key, value] of Object.entries(metadata?.annotations ?? {})) {
    const row = { execution_id: execution.id, key, value };
    await builderOf(tx.db).insertInto("agent_execution_annotation").values(row).execute();
  }
  touchParent(tx, execution);
  const change = { organizationId: scope.organizationId, type: "agent_execution", id: execution.id } as const;
  tx.record({ ...change, kind: "created", after: columns.body, facts: agentExecutionFacts(execution) });
  return execution as FoundAgentExecution;
}

type ChangingColumns = ReturnType<typeof changingColumns>;

const updateRow = prepared<
  ChangingColumns & { id: string; organization_id: string; changed_at: number },
  unknown
>((db, row) =>
  db
    .updateTable("agent_execution")
    .set({
      phase: row.phase,
      desired_phase: row.desired_phase,
      changed_at: row.changed_at,
      body: row.body,
    })
    .where("id", "=", row.id)
    .where("organization_id", "=", row.organization_id),
);

const setStopped = prepared<{ id: string; stoppedAt: number }, unknown>((db, { id, stoppedAt }) =>
  db.updateTable("agent_execution").set({ stopped_at: stoppedAt, first_turn: null }).where("id", "=", id),
);

/**
 * Changes an execution: its phases, its goal, its spec.
 * @returns the changed execution
 */
export async function updateAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  before: FoundAgentExecution,
  after: AgentExecution,
): Promise<FoundAgentExecution> {
  const columns = changingColumns(after);
  const organization_id = scope.organizationId;
  await updateRow(tx.db, { ...columns, id: before.id, organization_id, changed_at: tx.now });
  if (hasStopped(after) && !hasStopped(before)) {
    await setStopped(tx.db, { id: before.id, stoppedAt: tx.now });
    const hasFailed = after.status?.failureReason || after.status?.failureMessage;
    const subject = { organizationId: organization_id, id: before.id, at: tx.now };
    tx.countOutcome({ of: "agent execution", as: hasFailed ? "failed" : "stopped", subject });
  }
  touchParent(tx, after);
  tx.record({
    organizationId: scope.organizationId,
    type: "agent_execution",
    id: before.id,
    kind: "updated",
    before: toBody(AgentExecutionSchema, before),
    after: columns.body,
    facts: agentExecutionFacts(after),
  });
  return after as FoundAgentExecution;
}

/** Removes an execution permanently, with its inputs and its output. */
export async function removeAgentExecution(
  tx: WriteTransaction,
  scope: Scope,
  execution: AgentExecution,
): Promise<void> {
  await removeRoleAssignmentsOn(tx, scope, execution.id, execution.metadata?.creator?.id ?? "");
  await builderOf(tx.db)
    .deleteFrom("agent_execution")
    .where("id", "=", execution.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  touchParent(tx, execution);
  tx.record({
    organizationId: scope.organizationId,
    type: "agent_execution",
    id: execution.id,
    kind: "deleted",
    before: toBody(AgentExecutionSchema, execution),
    facts: agentExecutionFacts(execution),
  });
}

/** Returns the facts of an agent execution for its events, which may be visible only to its creator. */
export function agentExecutionFacts({ metadata, status }: AgentExecution): EventFacts {
  const creatorId = metadata?.creator?.id ?? null;
  const environmentId = status?.usedEnvironments[0]?.environmentId ?? null;
  return { creatorId, ownerId: creatorId, environmentId };
}

/** Wakes the listeners of the parent: its status includes its sub-agents. */
function touchParent(tx: WriteTransaction, { metadata }: AgentExecution): void {
  if (metadata?.parentExecutionId) tx.touch(metadata.parentExecutionId);
}

function changingColumns(execution: AgentExecution) {
  return {
    phase: phaseOfAgentExecution(execution),
    desired_phase: execution.spec?.desiredPhase ?? 0,
    body: toBody(AgentExecutionSchema, execution),
  };
}
