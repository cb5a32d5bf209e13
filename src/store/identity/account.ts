import { mailboxOf } from "../../domain/identity/account.ts";
import { fold } from "../../domain/text/fold.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";
import type { AccountTable } from "./identity-schema.ts";

/** A person's account in its stored form. */
export type StoredAccount = AccountTable;

const selectAccount = prepared<{ email: string }, AccountTable>((db, { email }) =>
  db.selectFrom("account").selectAll().where("email", "=", email),
);

/**
 * Returns the account with this address: letter by letter, or with its domain in lower case. Accounts belong to no
 * organization, so there is no scope.
 */
export async function findAccountByEmail(db: Reader, email: string): Promise<AccountTable | undefined> {
  const [row] = await selectAccount(db, { email });
  const mailbox = mailboxOf(email);
  return row ?? (mailbox === email ? undefined : (await selectAccount(db, { email: mailbox }))[0]);
}

/** Returns an account by its id, in any organization. */
export async function findAccount(db: Reader, id: string): Promise<AccountTable | undefined> {
  return builderOf(db).selectFrom("account").selectAll().where("id", "=", id).executeTakeFirst();
}

/** An organization that an account is a member of, with its role. */
export interface FoundMembership {
  readonly userId: string;
  /** OrganizationRole by number. */
  readonly role: number;
  readonly organizationId: string;
  readonly organizationName: string;
  /** Number of members of the organization, without those that left. */
  readonly memberCount: number;
  /** Set while the account is suspended there. */
  readonly suspendedAt: number | null;
}

/**
 * Returns the memberships of an account in all organizations, by user id, without those that it
 * left.
 */
export async function findMemberships(db: Reader, accountId: string): Promise<FoundMembership[]> {
  const rows = await builderOf(db)
    .selectFrom("member")
    .innerJoin("organization", "organization.id", "member.organization_id")
    .select((eb) => [
      "member.id as userId",
      "member.role",
      "member.suspended_at as suspendedAt",
      "organization.id as organizationId",
      "organization.name as organizationName",
      eb
        .selectFrom("member as each")
        .select((count) => count.fn.countAll<number>().as("count"))
        .whereRef("each.organization_id", "=", "organization.id")
        .where("each.left_at", "is", null)
        .as("memberCount"),
    ])
    .where("member.account_id", "=", accountId)
    .where("member.left_at", "is", null)
    .orderBy("member.id")
    .execute();
  return rows.map((row) => ({ ...row, memberCount: row.memberCount ?? 0 }));
}

/**
 * Creates an account. It belongs to no organization, so the installation's chain records it; the
 * organization's chain records its membership.
 *
 * @param scimOrganizationId the organization whose SCIM names the address; default none
 */
export async function insertAccount(
  tx: WriteTransaction,
  { id, name, email }: Pick<AccountTable, "id" | "name" | "email">,
  scimOrganizationId: string | null = null,
): Promise<void> {
  await builderOf(tx.db)
    .insertInto("account")
    .values({
      ...{ id, name, email, created_at: tx.now, updated_at: tx.now, blocked_at: null },
      scim_organization_id: scimOrganizationId,
      name_folded: fold(name),
      search_text: fold(`${name}\n${email}`),
    })
    .execute();
  tx.record({
    organizationId: null,
    type: "account",
    id,
    kind: "created",
    after: JSON.stringify({ name, email }),
  });
}

/**
 * Changes name and address of an account, which no other account may have.
 *
 * @param scimOrganizationId the organization whose SCIM names them
 */
export async function updateAccount(
  tx: WriteTransaction,
  before: AccountTable,
  { name, email }: Pick<AccountTable, "name" | "email">,
  scimOrganizationId: string,
): Promise<void> {
  if (name === before.name && email === before.email) return;
  const isSameAddress = email === before.email;
  await builderOf(tx.db)
    .updateTable("account")
    .set({
      name,
      email,
      updated_at: tx.now,
      name_folded: fold(name),
      search_text: fold(`${name}\n${email}`),
      scim_organization_id: isSameAddress ? before.scim_organization_id : scimOrganizationId,
    })
    .where("id", "=", before.id)
    .execute();
  tx.record({
    organizationId: null,
    type: "account",
    id: before.id,
    kind: "updated",
    before: JSON.stringify({ name: before.name, email: before.email }),
    after: JSON.stringify({ name, email }),
  });
}
