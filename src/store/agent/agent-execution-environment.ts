import { AgentExecutionSchema, type AgentInput } from "#gen/service/v1/agent_pb.js";
import { unindexed } from "../expressions.ts";
import { isSharedExecution } from "../identity/shared-execution.ts";
import { fromBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope } from "../store.ts";
import { inputOfRow } from "./agent-input.ts";

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
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .where("removed_at", "is", null),
);

/**
 * Returns the creators of the executions in an environment, which may have been removed, including executions that
 * have stopped, but not those removed by retention.
 */
export function findCreatorsIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<readonly { readonly id: string; readonly principal: number }[]> {
  return selectCreators(db, { organizationId, environmentId });
}

/** Returns whether an execution in an environment is shared with one of some groups. @param groupIds at least one */
export async function hasSharedExecutionIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
  groupIds: readonly string[],
): Promise<boolean> {
  const found = await builderOf(db)
    .selectFrom("agent_execution")
    .select("id")
    .where("environment_id", "=", environmentId)
    .where(unindexed("agent_execution.organization_id"), "=", organizationId)
    .where(isSharedExecution("agent_execution.id", groupIds))
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

const selectNewest = prepared<EnvironmentKey, { id: string; body: string }>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("agent_execution")
      .select(["id", "body"])
      .where("environment_id", "=", environmentId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .where(unindexed<string | null>("agent_execution.parent_id"), "is", null)
      .orderBy("id", "desc")
      .limit(1),
);

const selectFirstInput = prepared<{ executionId: string }, { body: string; receipt: number }>(
  (db, { executionId }) =>
    db
      .selectFrom("agent_input")
      .select(["body", "receipt"])
      .where("execution_id", "=", executionId)
      .orderBy("number")
      .limit(1),
);

/** An execution by its name, and its first input. */
export interface NamedExecution {
  readonly id: Handle<"agent_execution">;
  /** Empty for none. */
  readonly name: string;
  readonly firstInput: AgentInput | undefined;
}

/** Returns the newest execution in an environment that is not a sub-agent; undefined for none. */
export async function findNewestExecutionIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<NamedExecution | undefined> {
  const [row] = await selectNewest(db, { organizationId, environmentId });
  if (!row) return undefined;
  const id = row.id as Handle<"agent_execution">;
  const [input] = await selectFirstInput(db, { executionId: id });
  const name = fromBody(AgentExecutionSchema, row.body).metadata?.name ?? "";
  return { id, name, firstInput: input && inputOfRow(input) };
}
