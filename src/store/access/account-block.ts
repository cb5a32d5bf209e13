import type { AccountTable } from "../identity/identity-schema.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";

/** A change of whether an account is blocked. */
export interface BlockChange {
  /** Milliseconds since 1970 UTC; null unblocks the account. */
  readonly blockedAt: number | null;
  /** Ids of the organizations that the account is a member of: each gets a row in its own record. */
  readonly organizationIds: readonly string[];
  /**
   * Ids of other organizations in which something of the account was blocked. They get a row too,
   * without the reason, which is only for organizations that the account still belongs to.
   */
  readonly formerOrganizationIds?: readonly string[];
  /** By organization, the workflows that no longer start because the account is their executor. */
  readonly workflowIds?: ReadonlyMap<string, readonly string[]>;
  /** By organization, the agent executions that were stopped because they ran for the account. */
  readonly agentExecutionIds?: ReadonlyMap<string, readonly string[]>;
  readonly reason?: string;
}

/** Blocks or unblocks an account. The record gets its rows even if nothing changes, because of the reason. */
export async function updateAccountBlock(
  tx: WriteTransaction,
  { id, blocked_at }: Pick<AccountTable, "id" | "blocked_at">,
  change: BlockChange,
): Promise<void> {
  const { blockedAt, organizationIds, formerOrganizationIds = [], reason = "" } = change;
  if (blockedAt !== blocked_at) {
    await builderOf(tx.db)
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

/** Returns the current and former users of an account, in all organizations. */
export async function findUsersOfAccount(
  db: Reader,
  accountId: string,
): Promise<{ readonly userId: string; readonly organizationId: string }[]> {
  return builderOf(db)
    .selectFrom("member")
    .select(["id as userId", "organization_id as organizationId"])
    .where("account_id", "=", accountId)
    .orderBy("id")
    .execute();
}

/** Builds the body of a block's audit row. Empty lists of `cutOff` are left out. */
function blockBody(
  blockedAt: number | null,
  cutOff: Readonly<Record<string, readonly string[] | undefined>> = {},
): string {
  if (blockedAt === null) return "{}";
  const at = new Date(blockedAt).toISOString();
  const named = Object.entries(cutOff).filter(([, ids]) => ids !== undefined && ids.length > 0);
  return JSON.stringify({ blockedAt: at, ...Object.fromEntries(named) });
}
