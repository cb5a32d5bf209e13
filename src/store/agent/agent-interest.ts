import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { AgentInterestTable } from "./agent-schema.ts";

/** The key of an interest: its execution and its id. */
export interface InterestKey {
  readonly executionId: Handle<"agent_execution">;
  readonly interestId: string;
}

/** An interest found in any execution. */
export interface FoundInterest extends InterestKey {
  readonly organizationId: string;
}

const insertRow = prepared<AgentInterestTable, unknown>((db, row) =>
  db.insertInto("agent_interest").values({
    execution_id: row.execution_id,
    interest_id: row.interest_id,
    fires_at: row.fires_at,
    sub_agent_id: row.sub_agent_id,
    user_message: row.user_message,
    environment_id: row.environment_id,
    environment_phase: row.environment_phase,
  }),
);

const deleteAll = prepared<{ executionId: string }, unknown>((db, { executionId }) =>
  db.deleteFrom("agent_interest").where("execution_id", "=", executionId),
);

/** Replaces the interests of an execution. */
export async function replaceInterests(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
  interests: readonly Omit<AgentInterestTable, "execution_id">[],
): Promise<void> {
  await deleteAll(tx.db, { executionId });
  for (const interest of interests) await insertRow(tx.db, { ...interest, execution_id: executionId });
}

const selectInterests = prepared<{ executionId: string }, AgentInterestTable>((db, { executionId }) =>
  db.selectFrom("agent_interest").selectAll().where("execution_id", "=", executionId).orderBy("interest_id"),
);

/** Returns the interests of an execution, by id. */
export async function findInterests(
  db: Reader,
  executionId: Handle<"agent_execution">,
): Promise<AgentInterestTable[]> {
  return selectInterests(db, { executionId });
}

const deleteOne = prepared<InterestKey, { interest_id: string }>((db, { executionId, interestId }) =>
  db
    .deleteFrom("agent_interest")
    .where("execution_id", "=", executionId)
    .where("interest_id", "=", interestId)
    .returning("interest_id"),
);

/**
 * Removes an interest. Only the transaction that removes it handles its firing.
 * @returns whether the execution had it
 */
export async function removeInterest(tx: WriteTransaction, name: InterestKey): Promise<boolean> {
  return (await deleteOne(tx.db, name)).length > 0;
}

const deleteOfMessages = prepared<{ executionId: string }, { interest_id: string }>((db, { executionId }) =>
  db
    .deleteFrom("agent_interest")
    .where("execution_id", "=", executionId)
    .where("user_message", "=", 1)
    .returning("interest_id"),
);

/**
 * Removes an execution's interests in messages of users.
 * @returns their ids
 */
export async function removeUserMessageInterests(
  tx: WriteTransaction,
  executionId: Handle<"agent_execution">,
): Promise<string[]> {
  return (await deleteOfMessages(tx.db, { executionId })).map(({ interest_id }) => interest_id);
}

const selectDue = prepared<{ now: number; limit: number }, FoundInterest>((db, { now, limit }) =>
  db
    .selectFrom("agent_interest")
    .innerJoin("agent_execution", "agent_execution.id", "agent_interest.execution_id")
    .select([
      "agent_interest.execution_id as executionId",
      "agent_interest.interest_id as interestId",
      "agent_execution.organization_id as organizationId",
    ])
    .where("agent_interest.fires_at", "<=", now)
    .orderBy("agent_interest.fires_at")
    .limit(limit),
);

/**
 * Returns up to `limit` timer interests that are due, of all organizations. For the system, so
 * without a scope.
 */
export async function findDueTimers(db: Reader, now: number, limit: number): Promise<FoundInterest[]> {
  return selectDue(db, { now, limit });
}

const selectOfSubagent = prepared<{ subagentId: string }, InterestKey>((db, { subagentId }) =>
  db
    .selectFrom("agent_interest")
    .select(["execution_id as executionId", "interest_id as interestId"])
    .where("sub_agent_id", "=", subagentId),
);

/** Returns the interests in the end of a sub-agent; only its parent can have them. */
export async function findInterestsInSubagent(
  db: Reader,
  subagentId: Handle<"agent_execution">,
): Promise<InterestKey[]> {
  return selectOfSubagent(db, { subagentId });
}

/** An interest in an environment. */
export interface EnvironmentInterest extends InterestKey {
  /** The phase that it waits for; empty for any. */
  readonly phase: string | null;
}

const selectOfEnvironment = prepared<{ organizationId: string; environmentId: string }, EnvironmentInterest>(
  (db, { organizationId, environmentId }) =>
    db
      .selectFrom("agent_interest")
      .innerJoin("agent_execution", "agent_execution.id", "agent_interest.execution_id")
      .select(["execution_id as executionId", "interest_id as interestId", "environment_phase as phase"])
      .where("agent_interest.environment_id", "=", environmentId)
      .where(unindexed("agent_execution.organization_id"), "=", organizationId)
      .orderBy("execution_id"),
);

/** Returns the interests in an environment, for any phase. */
export async function findInterestsInEnvironment(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
): Promise<EnvironmentInterest[]> {
  return selectOfEnvironment(db, { organizationId, environmentId });
}
