import type { ExpressionBuilder } from "kysely";
import { unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Schema } from "../schema.ts";
import type { Scope, WriteTransaction } from "../store.ts";

/**
 * Tables of what outlives an environment: the report on its changes, its connections, and the pull requests opened in
 * it. Their rows belong to an action if they name one, else to the agent executions in the environment.
 */
const TABLES = ["environment_changes", "environment_egress", "pull_request"] as const;

const deletes = TABLES.map((table) =>
  prepared<{ environmentId: string; organizationId: string }, unknown>(
    (db, { environmentId, organizationId }) =>
      db
        .deleteFrom(table)
        .where("environment_id", "=", environmentId)
        .where(unindexed(`${table}.organization_id`), "=", organizationId)
        .where("action_id", "is", null)
        .where((eb) =>
          eb.not(
            eb.or([
              eb.exists(eb.selectFrom("environment").select("id").where("id", "=", environmentId)),
              eb.exists(
                eb.selectFrom("agent_execution").select("id").where("environment_id", "=", environmentId),
              ),
            ]),
          ),
        ),
  ),
);

/** Removes what outlived a removed environment, once no agent execution and no action own it. */
export async function removeUnownedRecords(
  tx: WriteTransaction,
  { organizationId }: Scope,
  environmentId: string,
): Promise<void> {
  for (const remove of deletes) await remove(tx.db, { environmentId, organizationId });
}

/** Returns whether an environment has rows that no action owns, as a number: most environments of actions have none. */
export function hasRecordsWithoutAction(eb: ExpressionBuilder<Schema, "environment">, environmentId: string) {
  const exist = TABLES.map((table) =>
    eb.exists(
      eb
        .selectFrom(table)
        .select(`${table}.environment_id`)
        .where(`${table}.environment_id`, "=", environmentId)
        .where(`${table}.action_id`, "is", null),
    ),
  );
  return eb.case().when(eb.or(exist)).then(eb.lit(1)).else(eb.lit(0)).end();
}
