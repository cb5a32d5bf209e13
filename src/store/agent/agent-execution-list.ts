import type { SelectQueryBuilder } from "kysely";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline, octets } from "../expressions.ts";
import { firstRows, firstRowsInPhases, type RowOrder } from "../first-rows.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";
import { type StoredAgentExecution, storedOfRow } from "./agent-execution.ts";

/**
 * The conditions of a list of agent executions: fields combine with AND, values inside one with OR;
 * empty means any.
 */
export interface AgentExecutionFilter {
  readonly ids: readonly string[];
  readonly agentIds: readonly string[];
  readonly projectIds: readonly string[];
  readonly environmentIds: readonly string[];
  readonly creatorIds: readonly string[];
  readonly sessionIds: readonly string[];
  readonly phases: readonly number[];
  readonly roles: readonly number[];
  /** All must match, key and value equal. */
  readonly annotations: Readonly<Record<string, string>>;
  /**
   * Subject whose executions are listed, with the groups whose shared ones are; undefined for those of all subjects.
   */
  readonly reader: (Pick<Subject, "id" | "principal"> & { readonly groupIds: readonly string[] }) | undefined;
}

/** Returns up to `limit` executions after `after`, the newest first. */
export async function findAgentExecutionPage(
  db: Reader,
  scope: Scope,
  filter: AgentExecutionFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<StoredAgentExecution>[]> {
  const order = { direction: "desc", after } as const;
  const all = executionsOf(db, scope);
  const { reader, phases } = filter;
  if (!reader) {
    const rows = await firstRowsInPhases("agent_execution", all, fitting(all, filter), phases, order, limit);
    return listed(db, rows);
  }
  const own = all.where("creator_id", "=", reader.id).where("creator_principal", "=", reader.principal);
  const rows = await firstRowsInPhases("agent_execution", all, fitting(own, filter), phases, order, limit);
  // One query for each group: for several at once the engine would read all executions shared with any of them.
  for (const groupId of reader.groupIds)
    rows.push(...(await findSharedRows(db, scope, { ...filter, groupId }, after, limit)));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const ids = [...byId.keys()].sort().reverse().slice(0, limit);
  return listed(
    db,
    ids.flatMap((id) => byId.get(id) ?? []),
  );
}

/** Returns up to `limit` executions that are shared with a group, the newest first. */
function findSharedRows(
  db: Reader,
  scope: Scope,
  { groupId, ...filter }: AgentExecutionFilter & { readonly groupId: string },
  after: PagePosition | undefined,
  limit: number,
) {
  const shared = executionsOf(db, scope)
    .innerJoin("role_assignment", "role_assignment.resource_id", "agent_execution.id")
    .where("role_assignment.group_id", "=", groupId)
    .where("role_assignment.resource_type", "=", ResourceType.AGENT_EXECUTION);
  const inPhases =
    filter.phases.length > 0 ? shared.where("agent_execution.phase", "in", filter.phases) : shared;
  const columns = ["role_assignment.resource_id"] as const;
  const order: RowOrder = { columns, direction: "desc", after: after && [after.id] };
  return firstRows(shared, fitting(inPhases, filter), order, limit);
}

function executionsOf(db: Reader, scope: Scope) {
  return (
    builderOf(db)
      .selectFrom("agent_execution")
      .select([
        "agent_execution.id",
        "progress",
        "account_id",
        "environment_id",
        "made_environment",
        "runner_id",
        "step_key",
        "queue_revision",
        "last_sequence",
        "earlier_id",
        "earlier_sequence",
        "is_fork",
        "origins",
        ...bodyColumns("agent_execution"),
      ])
      // Sub-agents are returned with their parent, in the same size there as here.
      .select((eb) =>
        eb
          .selectFrom("agent_execution as child")
          .select((inner) =>
            inner.fn
              .coalesce(
                inner.fn.sum<number>(inner(octets("child.body"), "+", octets("child.progress"))),
                inner.lit(0),
              )
              .as("bytes"),
          )
          .whereRef("child.parent_id", "=", "agent_execution.id")
          .as("child_bytes"),
      )
      .where(checkDeadline())
      .where("agent_execution.organization_id", "=", scope.organizationId)
      .where("agent_execution.removed_at", "is", null)
  );
}

/** Restricts a query by all conditions except those on readers and phases. */
function fitting<T extends "agent_execution", O>(
  rows: SelectQueryBuilder<Schema, T, O>,
  filter: AgentExecutionFilter,
): SelectQueryBuilder<Schema, T, O> {
  let query = rows as unknown as SelectQueryBuilder<Schema, "agent_execution", O>;
  if (filter.ids.length > 0) query = query.where("agent_execution.id", "in", filter.ids);
  if (filter.agentIds.length > 0) query = query.where("agent_execution.agent_id", "in", filter.agentIds);
  if (filter.projectIds.length > 0)
    query = query.where("agent_execution.project_id", "in", filter.projectIds);
  if (filter.environmentIds.length > 0)
    query = query.where("agent_execution.environment_id", "in", filter.environmentIds);
  if (filter.creatorIds.length > 0)
    query = query.where("agent_execution.creator_id", "in", filter.creatorIds);
  if (filter.sessionIds.length > 0)
    query = query.where("agent_execution.session_id", "in", filter.sessionIds);
  if (filter.roles.length > 0) query = query.where("agent_execution.role", "in", filter.roles);
  for (const [key, value] of Object.entries(filter.annotations)) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("agent_execution_annotation")
          .select("agent_execution_annotation.execution_id")
          .whereRef("agent_execution_annotation.execution_id", "=", "agent_execution.id")
          .where("agent_execution_annotation.key", "=", key)
          .where("agent_execution_annotation.value", "=", value),
      ),
    );
  }
  return query as unknown as SelectQueryBuilder<Schema, T, O>;
}

type ExecutionRow = Awaited<ReturnType<ReturnType<typeof executionsOf>["execute"]>>[number];

function listed(db: Reader, rows: readonly ExecutionRow[]): ListedRow<StoredAgentExecution>[] {
  const whole = rows.map((row) => ({
    ...row,
    bytes: row.bytes + row.progress.length + (row.child_bytes ?? 0),
  }));
  return listedRows(db, "agent_execution", whole, positionById, storedOfRow);
}
