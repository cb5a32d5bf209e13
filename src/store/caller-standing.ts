import type { Kysely } from "kysely";
import { prepared } from "./prepared.ts";
import type { Schema } from "./schema.ts";

/** Whether a caller is cut off; null where it is not, or where there is no such row. */
export interface CallerStanding {
  readonly blocked_at: number | null;
  readonly disabled_at: number | null;
}

const selectStanding = prepared<{ accountId: string; tokenId: string }, CallerStanding>(
  (db, { accountId, tokenId }) =>
    db.selectNoFrom((eb) => [
      eb.selectFrom("account").select("blocked_at").where("id", "=", accountId).as("blocked_at"),
      eb.selectFrom("token").select("disabled_at").where("id", "=", tokenId).as("disabled_at"),
    ]),
);

/** Whether the account or the token of a caller was cut off since the gate let it in. */
export async function findCallerStanding(
  db: Kysely<Schema>,
  caller: { readonly accountId: string; readonly tokenId: string },
): Promise<CallerStanding> {
  const [row] = await selectStanding(db, { accountId: caller.accountId, tokenId: caller.tokenId });
  return row ?? { blocked_at: null, disabled_at: null };
}
