import { unindexed } from "../../expressions.ts";
import { prepared } from "../../prepared.ts";
import type { Scope, WriteTransaction } from "../../store.ts";

const deleteUnowned = prepared<{ environmentId: string; organizationId: string }, unknown>(
  (db, { environmentId, organizationId }) =>
    db
      .deleteFrom("pull_request")
      .where("environment_id", "=", environmentId)
      .where(unindexed("pull_request.organization_id"), "=", organizationId)
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
);

/** Removes the pull requests that people opened in a removed environment, once no agent execution belongs to it. */
export async function removeUnownedPullRequests(
  tx: WriteTransaction,
  { organizationId }: Scope,
  environmentId: string,
): Promise<void> {
  await deleteUnowned(tx.db, { environmentId, organizationId });
}
