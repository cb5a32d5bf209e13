import { type RawBuilder, type SqlBool, sql } from "kysely";

/**
 * Returns the condition that an agent execution, or the one that started it as a sub-agent, is shared with one of some
 * groups. Executions removed by retention do not match.
 * @param column the column with the id of the execution
 * @param groupIds at least one
 */
export function isSharedExecution(
  column: `${string}.${string}`,
  groupIds: readonly string[],
): RawBuilder<SqlBool> {
  return sql<SqlBool>`exists (
    select role_assignment.id from agent_execution as shared_run
    join role_assignment on role_assignment.resource_id in (shared_run.id, shared_run.parent_id)
    where shared_run.id = ${sql.ref(column)} and shared_run.removed_at is null
      and role_assignment.group_id in (${sql.join(groupIds)})
  )`;
}
