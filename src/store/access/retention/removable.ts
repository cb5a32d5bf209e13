import { sql } from "kysely";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { EnvironmentPhase as Phase } from "#gen/service/v1/environment_pb.js";
import { unindexed } from "../../expressions.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";

/** Phases in which nothing of an environment runs. */
const AT_REST = [Phase.STOPPED, Phase.DELETING, Phase.DELETED];

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
 * Returns those of some executions that have ended and that nothing needs: no open approval, no pull request that is
 * followed, no agent that runs for a step, and no environment that an action left. What is retried is left to
 * {@link findRetries}.
 */
export async function findRemovableExecutions(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<RemovableExecution[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<RemovableExecution>`
    select id, workflow_id as "workflowId", started_at as "startedAt", finished_at as "finishedAt",
      pending_count + running_count + failed_count + done_count + stopped_count as actions
    from workflow_execution as run
    where id in (${sql.join(ids)}) and organization_id = ${organizationId}
      and finished_at is not null and removed_at is null
      and not exists (select 1 from approval where organization_id = run.organization_id
        and phase = ${sql.lit(ApprovalState.PENDING)} and workflow_execution_id = run.id)
      and not exists (select 1 from pull_request where execution_id = run.id and next_poll_at is not null)
      and not exists (select 1 from workflow_action as action
        join agent_execution as agent on agent.action_id = action.id
        where action.execution_id = run.id and agent.stopped_at is null)
      and not exists (select 1 from workflow_action as action
        join environment on environment.id = action.environment_id
        where action.execution_id = run.id)
    order by id`.execute(builderOf(db));
  return rows;
}

/**
 * Returns the ids of those of some agent executions that have stopped and that nothing needs: no parent and no sub-agent
 * that runs, no open approval, no pull request that is followed, no open execution of a workflow, and no environment of
 * its own that runs or waits for an approval of a push. What goes on with its conversation is left to {@link findHolders}.
 */
export async function findRemovableRuns(
  db: Reader,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<{ id: string }>`
    select id from agent_execution as run
    where id in (${sql.join(ids)}) and organization_id = ${organizationId}
      and stopped_at is not null and removed_at is null
      and not exists (select 1 from agent_execution as child where child.parent_id = run.id
        and child.stopped_at is null)
      and not exists (select 1 from agent_execution as parent where parent.id = run.parent_id
        and parent.stopped_at is null)
      and not exists (select 1 from approval where agent_execution_id = run.id
        and phase = ${sql.lit(ApprovalState.PENDING)})
      and not exists (select 1 from pull_request where agent_execution_id = run.id and next_poll_at is not null)
      and not exists (select 1 from workflow_action as action
        join workflow_execution as execution on execution.id = action.execution_id
        where action.id = run.action_id and execution.finished_at is null)
      and not (made_environment = 1 and exists (select 1 from environment
        where environment.id = run.environment_id and environment.phase not in (${sql.join(AT_REST.map(sql.lit))})))
      and not (made_environment = 1 and exists (select 1 from approval
        where approval.environment_id = run.environment_id and approval.phase = ${sql.lit(ApprovalState.PENDING)}))
    order by id desc`.execute(builderOf(db));
  return rows.map(({ id }) => id);
}

/** A run or an execution, and one that has to go before it. */
export interface Holder {
  readonly id: string;
  readonly holderId: string;
}

/**
 * Returns what holds some agent executions: those that go on with its conversation or branch off it, since they are read
 * together with its blocks, and others in the environment that was made for it, which goes with it.
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
 * Returns what holds some executions of workflows: those that retry them, whose reports, and those of their own retries,
 * have the outputs of all before them.
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
