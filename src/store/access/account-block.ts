import type { Kysely } from "kysely";
import type { AccountTable } from "../identity/identity-schema.ts";
import type { Schema } from "../schema.ts";
import type { WriteTransaction } from "../store.ts";

/** A change of whether an account is cut off. */
export interface BlockChange {
  /** Milliseconds since 1970 UTC; null gives access again. */
  readonly blockedAt: number | null;
  /** The organizations that the account is a member of: each is told in a row of its own. */
  readonly organizationIds: readonly string[];
  /**
   * Others in which something of the account was cut off. They are told as well,
   * without the reason: its words are for those that the account still concerns.
   */
  readonly formerOrganizationIds?: readonly string[];
  /** By organization, the workflows that start no more because the account is their executor. */
  readonly workflowIds?: ReadonlyMap<string, readonly string[]>;
  /** By organization, the agent runs that were stopped because they ran for the account. */
  readonly agentExecutionIds?: ReadonlyMap<string, readonly string[]>;
  readonly reason?: string;
}

/**
 * Cuts an account off or gives it access again. Where nothing changes the record
 * still gets its rows, for the reason.
 */
export async function updateAccountBlock(
  tx: WriteTransaction,
  { id, blocked_at }: Pick<AccountTable, "id" | "blocked_at">,
  change: BlockChange,
): Promise<void> {
  const { blockedAt, organizationIds, formerOrganizationIds = [], reason = "" } = change;
  if (blockedAt !== blocked_at) {
    await tx.db
      .updateTable("account")
      .set({ blocked_at: blockedAt, updated_at: tx.now })
      .where("id", "=", id)
      .execute();
  }
  for (const organizationId of [null, ...organizationIds, ...formerOrganizationIds]) {
    const isFormer = organizationId !== null && formerOrganizationIds.includes(organizationId);
    tx.record({
      organizationId,
      type: "account",
      id,
      kind: "updated",
      before: blockBody(blocked_at),
      after: blockBody(blockedAt, {
        workflowIds: change.workflowIds?.get(organizationId ?? ""),
        agentExecutionIds: change.agentExecutionIds?.get(organizationId ?? ""),
      }),
      reason: isFormer ? "" : reason,
    });
  }
}

/** The users that an account is or was, in all organizations. */
export async function findUsersOfAccount(
  db: Kysely<Schema>,
  accountId: string,
): Promise<{ readonly userId: string; readonly organizationId: string }[]> {
  return db
    .selectFrom("member")
    .select(["id as userId", "organization_id as organizationId"])
    .where("account_id", "=", accountId)
    .orderBy("id")
    .execute();
}

/** Of `cutOff`, lists that are empty are left out. */
function blockBody(
  blockedAt: number | null,
  cutOff: Readonly<Record<string, readonly string[] | undefined>> = {},
): string {
  if (blockedAt === null) return "{}";
  const at = new Date(blockedAt).toISOString();
  const named = Object.entries(cutOff).filter(([, ids]) => ids !== undefined && ids.length > 0);
  return JSON.stringify({ blockedAt: at, ...Object.fromEntries(named) });
}
