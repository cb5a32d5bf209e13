import type { WriteTransaction } from "./store.ts";

/** Starts an organization, as of the transaction's instant. It comes first: what belongs to it is numbered by its row. */
export async function insertOrganization(
  tx: WriteTransaction,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<void> {
  await tx.db
    .insertInto("organization")
    .values({ id, name, created_at: tx.now, updated_at: tx.now, sequence: 0 })
    .execute();
  tx.record({
    organizationId: id,
    type: "organization",
    id,
    kind: "created",
    after: JSON.stringify({ name }),
  });
}
