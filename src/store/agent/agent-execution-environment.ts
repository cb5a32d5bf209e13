import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";

interface EnvironmentKey {
  readonly organizationId: string;
  readonly environmentId: string;
}

const selectOpenIds = prepared<EnvironmentKey, { id: string }>((db, { organizationId, environmentId }) =>
  db
    .selectFrom("agent_execution")
    .select("id")
    .where("environment_id", "=", environmentId)
    .where(unindexed("agent_execution.organization_id"), "=", organizationId)
    .where("stopped_at", "is", null),
);

/** Returns the ids of the executions in an environment that have not stopped. */
export async function findOpenAgentExecutionIdsIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<readonly string[]> {
  return (await selectOpenIds(db, { organizationId, environmentId })).map(({ id }) => id);
}

const selectCreators = prepared<EnvironmentKey, { id: string; principal: number }>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("agent_execution")
      .select(["creator_id as id", "creator_principal as principal"])
      .distinct()
      .where("environment_id", "=", environmentId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId),
);

/** Returns the creators of the executions in an environment, which may be gone, and of those that have stopped. */
export function findCreatorsIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<readonly { readonly id: string; readonly principal: number }[]> {
  return selectCreators(db, { organizationId, environmentId });
}
