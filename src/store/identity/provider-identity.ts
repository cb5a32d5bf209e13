import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";
import type { ProviderIdentityTable } from "./identity-schema.ts";

/** An identity in its stored form. */
export type StoredIdentity = ProviderIdentityTable;

/** Returns the identity of a subject at an issuer. It belongs to an account, and so to no organization. */
export async function findIdentity(
  db: Reader,
  issuer: string,
  subject: string,
): Promise<ProviderIdentityTable | undefined> {
  return builderOf(db)
    .selectFrom("provider_identity")
    .selectAll()
    .where("issuer", "=", issuer)
    .where("subject", "=", subject)
    .executeTakeFirst();
}

/** Returns the identities of the account with an id, oldest first. */
export async function findIdentities(db: Reader, accountId: string): Promise<ProviderIdentityTable[]> {
  return builderOf(db)
    .selectFrom("provider_identity")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("id")
    .execute();
}

/** Inserts an identity. It belongs to an account, so it is recorded in the installation's chain. */
export async function insertIdentity(
  tx: WriteTransaction,
  identity: Omit<ProviderIdentityTable, "created_at">,
): Promise<ProviderIdentityTable> {
  const row = { ...identity, created_at: tx.now };
  await builderOf(tx.db).insertInto("provider_identity").values(row).execute();
  record(tx, undefined, row);
  return row;
}

/** Changes the address that the provider gives; an equal address is not a change. */
export async function updateIdentity(
  tx: WriteTransaction,
  before: ProviderIdentityTable,
  { email, email_verified }: Pick<ProviderIdentityTable, "email" | "email_verified">,
): Promise<void> {
  if (before.email === email && before.email_verified === email_verified) return;
  await builderOf(tx.db)
    .updateTable("provider_identity")
    .set({ email, email_verified })
    .where("id", "=", before.id)
    .execute();
  record(tx, before, { ...before, email, email_verified });
}

function record(
  tx: WriteTransaction,
  before: ProviderIdentityTable | undefined,
  after: ProviderIdentityTable,
): void {
  tx.record({
    organizationId: null,
    type: "account",
    id: after.account_id,
    kind: "updated",
    operation: before ? "account/identity-address" : "account/identity",
    before: before ? bodyOf(before) : "{}",
    after: bodyOf(after),
  });
}

function bodyOf({ issuer, subject, email, email_verified }: ProviderIdentityTable): string {
  return JSON.stringify({ issuer, subject, email, emailVerified: email_verified === 1 });
}
