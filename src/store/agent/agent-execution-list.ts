import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline, octets } from "../expressions.ts";
import { firstRowsInPhases } from "../first-rows.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
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
  /** Subject whose executions are listed; undefined for those of everybody. */
  readonly reader: Pick<Subject, "id" | "principal"> | undefined;
}

/** Returns up to `limit` executions after `after`, the newest first. */
export async function findAgentExecutionPage(
  db: Reader,
  scope: Scope,
  filter: AgentExecutionFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<StoredAgentExecution>[]> {
  const own = builderOf(db)
    .selectFrom("agent_execution")
    .select([
      "id",
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
    .where("organization_id", "=", scope.organizationId)
    .where("removed_at", "is", null);
  let query = own;
  if (filter.reader) {
    const { id, principal } = filter.reader;
    query = query.where("creator_id", "=", id).where("creator_principal", "=", principal);
  }
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  if (filter.agentIds.length > 0) query = query.where("agent_id", "in", filter.agentIds);
  if (filter.projectIds.length > 0) query = query.where("project_id", "in", filter.projectIds);
  if (filter.environmentIds.length > 0) query = query.where("environment_id", "in", filter.environmentIds);
  if (filter.creatorIds.length > 0) query = query.where("creator_id", "in", filter.creatorIds);
  if (filter.sessionIds.length > 0) query = query.where("session_id", "in", filter.sessionIds);
  if (filter.roles.length > 0) query = query.where("role", "in", filter.roles);
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
  const order = { direction: "desc", after } as const;
  const rows = await firstRowsInPhases("agent_execution", own, query, filter.phases, order, limit);
  const whole = rows.map((row) => ({
    ...row,
    bytes: row.bytes + row.progress.length + (row.child_bytes ?? 0),
  }));
  return listedRows(db, "agent_execution", whole, positionById, storedOfRow);
}
