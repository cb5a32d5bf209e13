import type { Kysely } from "kysely";
import { prepared } from "./prepared.ts";
import type { AccountTable, Schema } from "./schema.ts";
import type { WriteTransaction } from "./store.ts";

const selectAccount = prepared<{ email: string }, AccountTable>((db, { email }) =>
  db.selectFrom("account").selectAll().where("email", "=", email),
);

/** The account with exactly this address. Accounts stand above organizations, so there is no scope. */
export async function findAccountByEmail(
  db: Kysely<Schema>,
  email: string,
): Promise<AccountTable | undefined> {
  const [row] = await selectAccount(db, { email });
  return row;
}

/**
 * Makes an account. It stands above organizations, so the installation's chain
 * records it; the organization's records its membership.
 */
export async function insertAccount(
  tx: WriteTransaction,
  { id, name, email }: Pick<AccountTable, "id" | "name" | "email">,
): Promise<void> {
  await tx.db
    .insertInto("account")
    .values({ id, name, email, created_at: tx.now, updated_at: tx.now, blocked_at: null })
    .execute();
  tx.record({
    organizationId: null,
    type: "account",
    id,
    kind: "created",
    after: JSON.stringify({ name, email }),
  });
}
