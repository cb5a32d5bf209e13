import { type RawBuilder, sql } from "kysely";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { unindexed } from "../../expressions.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";

/** Phases in which an environment runs nothing. */
const AT_REST = [Phase.STOPPED, Phase.DELETING, Phase.DELETED];

interface Named {
  readonly id: string;
}

const PENDING = sql.lit(ApprovalState.PENDING);

/** An execution that nothing needs any more. */
export interface RemovableExecution {
  readonly id: string;
  readonly workflowId: string;
  readonly startedAt: number;
  readonly finishedAt: number;
  /** Number of its actions. */
  readonly actions: number;
}

/**
 * Returns the given executions that have ended and that nothing needs: no open approval, no tracked pull request, no
 * agent that runs for a step, and no environment left by an action. Retries are checked by {@link findRetries}.
 */
export async function findRemovableExecutions(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<RemovableExecution[]> {
  if (ids.length === 0) return [];
  const list = sql.join(ids);
  const ended = sql<RemovableExecution>`
    select id, workflow_id as "workflowId", started_at as "startedAt", finished_at as "finishedAt",
      pending_count + running_count + failed_count + done_count + stopped_count as actions
    from workflow_execution
    where id in (${list}) and organization_id = ${organizationId} and finished_at is not null and removed_at is null
    order by id`;
  return findFree(db, ended, [
    sql<Named>`select workflow_execution_id as id from approval
      where organization_id = ${organizationId} and phase = ${PENDING} and workflow_execution_id in (${list})`,
    sql<Named>`select execution_id as id from pull_request
      where execution_id in (${list}) and next_poll_at is not null`,
    sql<Named>`select action.execution_id as id from workflow_action as action
      join agent_execution as agent on agent.action_id = action.id
      where action.execution_id in (${list}) and agent.stopped_at is null`,
    sql<Named>`select action.execution_id as id from workflow_action as action
      join environment on environment.id = action.environment_id
      where action.execution_id in (${list})`,
  ]);
}

/**
 * Returns the rows of a query that none of the other queries names. Each is run separately: planning them together
 * took PostgreSQL ten times as long as executing them.
 */
async function findFree<Row extends Named>(
  db: Reader,
  query: RawBuilder<Row>,
  holding: readonly RawBuilder<Named>[],
): Promise<Row[]> {
  const builder = builderOf(db);
  const [{ rows }, ...found] = await Promise.all([
    query.execute(builder),
    ...holding.map((each) => each.execute(builder)),
  ]);
  const held = new Set(found.flatMap((each) => each.rows.map(({ id }) => id)));
  return rows.filter(({ id }) => !held.has(id));
}

/**
 * Returns the given agent executions that have stopped and that nothing needs: no running parent or sub-agent, no open
 * approval, no tracked pull request, no open execution of a workflow, and no environment of its own that runs or waits
 * for an approval of a push. Executions that continue its conversation are checked by {@link findHolders}.
 */
export async function findRemovableRuns(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return [];
  const list = sql.join(ids);
  const stopped = sql<Named>`
    select id from agent_execution
    where id in (${list}) and organization_id = ${organizationId} and stopped_at is not null and removed_at is null
    order by id desc`;
  const free = await findFree(db, stopped, [
    sql<Named>`select parent_id as id from agent_execution where parent_id in (${list}) and stopped_at is null`,
    sql<Named>`select run.id from agent_execution as run join agent_execution as parent on parent.id = run.parent_id
      where run.id in (${list}) and parent.stopped_at is null`,
    sql<Named>`select agent_execution_id as id from approval
      where agent_execution_id in (${list}) and phase = ${PENDING}`,
    sql<Named>`select agent_execution_id as id from pull_request
      where agent_execution_id in (${list}) and next_poll_at is not null`,
    sql<Named>`select run.id from agent_execution as run
      join workflow_action as action on action.id = run.action_id
      join workflow_execution as execution on execution.id = action.execution_id
      where run.id in (${list}) and execution.finished_at is null`,
    sql<Named>`select run.id from agent_execution as run join environment on environment.id = run.environment_id
      where run.id in (${list}) and run.made_environment = 1
        and environment.phase not in (${sql.join(AT_REST.map(sql.lit))})`,
    sql<Named>`select run.id from agent_execution as run join approval on approval.environment_id = run.environment_id
      where run.id in (${list}) and run.made_environment = 1 and approval.phase = ${PENDING}`,
  ]);
  return free.map(({ id }) => id);
}

/** An execution, and one that must be removed before it. */
export interface Holder {
  readonly id: string;
  readonly holderId: string;
}

/**
 * Returns the executions that keep agent executions from removal: those that continue or branch off their
 * conversation, since they are read together with its blocks, and others in the environment that was created for one,
 * which is removed with it.
 */
export async function findHolders(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<Holder[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<Holder>`
    select earlier_id as id, id as "holderId" from agent_execution
      where earlier_id in (${sql.join(ids)}) and removed_at is null
        and ${unindexed("agent_execution.organization_id")} = ${organizationId}
    union all
    select run.id as id, other.id as "holderId" from agent_execution as run
      join agent_execution as other on other.environment_id = run.environment_id
      where run.id in (${sql.join(ids)}) and run.made_environment = 1 and other.id <> run.id
        and other.removed_at is null and ${unindexed("run.organization_id")} = ${organizationId}`.execute(
    builderOf(db),
  );
  return rows;
}

/**
 * Returns the executions that keep executions of workflows from removal: those that retry them, since the reports of a
 * retry, and of retries of it, include the outputs of all before.
 */
export async function findRetries(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<Holder[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<Holder>`
    select retried_execution_id as id, id as "holderId" from workflow_execution
    where retried_execution_id in (${sql.join(ids)}) and removed_at is null
      and ${unindexed("workflow_execution.organization_id")} = ${organizationId}`.execute(builderOf(db));
  return rows;
}
