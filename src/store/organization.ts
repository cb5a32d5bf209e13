import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";
import type { WriteTransaction } from "./store.ts";

/** Whether there is any organization; before the first start there is none. */
export async function hasOrganization(db: Kysely<Schema>): Promise<boolean> {
  return (await db.selectFrom("organization").select("id").limit(1).executeTakeFirst()) !== undefined;
}

/** Starts an organization. It comes first in its transaction: changes of what belongs to it are numbered by its row. */
export async function insertOrganization(
  tx: WriteTransaction,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<void> {
  await tx.db
    .insertInto("organization")
    .values({
      id,
      name,
      created_at: tx.now,
      updated_at: tx.now,
      sequence: 0,
      enterprise: 0,
      chain_hash: null,
    })
    .execute();
  tx.record({
    organizationId: id,
    type: "organization",
    id,
    kind: "created",
    after: JSON.stringify({ name }),
  });
}
