import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { OrganizationInviteTable } from "./identity-schema.ts";

/** An invite in its stored form. */
export type StoredInvite = OrganizationInviteTable;

const selectByHash = prepared<{ hash: Uint8Array }, OrganizationInviteTable>((db, { hash }) =>
  db.selectFrom("organization_invite").selectAll().where("hash", "=", hash),
);

/** Returns the invite with the hash of its id, of any organization: everyone who has the id may use it. */
export async function findInviteByHash(
  db: Reader,
  hash: Uint8Array,
): Promise<OrganizationInviteTable | undefined> {
  const [row] = await selectByHash(db, { hash });
  return row;
}

/** Returns the invite of the scope's organization. */
export async function findInvite(
  db: Reader,
  { organizationId }: Scope,
): Promise<OrganizationInviteTable | undefined> {
  return builderOf(db)
    .selectFrom("organization_invite")
    .selectAll()
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
}

/** Stores the invite of an organization, replacing the previous one. */
export async function replaceInvite(
  tx: WriteTransaction,
  { organizationId }: Scope,
  invite: OrganizationInviteTable,
): Promise<void> {
  const before = await findInvite(tx.db, { organizationId });
  await builderOf(tx.db)
    .deleteFrom("organization_invite")
    .where("organization_id", "=", organizationId)
    .execute();
  await builderOf(tx.db).insertInto("organization_invite").values(invite).execute();
  recordInvite(tx, organizationId, before, invite);
}

/** Counts one more use of an invite. */
export async function countInviteUse(
  tx: WriteTransaction,
  { organizationId }: Scope,
  invite: OrganizationInviteTable,
): Promise<void> {
  const after = { ...invite, uses: invite.uses + 1 };
  await builderOf(tx.db)
    .updateTable("organization_invite")
    .set({ uses: after.uses })
    .where("id", "=", invite.id)
    .where("organization_id", "=", organizationId)
    .execute();
  recordInvite(tx, organizationId, invite, after);
}

/** Records that the id of an invite was returned. */
export function recordInviteRead(tx: WriteTransaction, { organizationId }: Scope): void {
  tx.record({ organizationId, type: "organization", id: organizationId, kind: "read" });
}

function recordInvite(
  tx: WriteTransaction,
  organizationId: string,
  before: OrganizationInviteTable | undefined,
  after: OrganizationInviteTable,
): void {
  tx.record({
    organizationId,
    type: "organization",
    id: organizationId,
    kind: "updated",
    before: before ? inviteBody(before) : "{}",
    after: inviteBody(after),
  });
}

/** Returns the audit record of an invite: neither its id nor the hash of the id. */
function inviteBody({ id, role, max_uses, uses, expires_at }: OrganizationInviteTable): string {
  const expiresAt = new Date(expires_at).toISOString();
  return JSON.stringify({ invite: { id, role, maxUses: max_uses, uses, expiresAt } });
}
