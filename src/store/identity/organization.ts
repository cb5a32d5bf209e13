import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { OrganizationStorageTable, OrganizationTable } from "./identity-schema.ts";

/** An organization in its stored form. */
export type StoredOrganization = OrganizationTable;

/** Returns whether there is any organization; before the first start there is none. */
export async function hasOrganization(db: Reader): Promise<boolean> {
  return (
    (await builderOf(db).selectFrom("organization").select("id").limit(1).executeTakeFirst()) !== undefined
  );
}

/**
 * Returns whether there ever was an organization, since the installation's chain keeps the names of
 * removed ones.
 */
export async function hadOrganization(db: Reader): Promise<boolean> {
  const row = await builderOf(db)
    .selectFrom("audit_log")
    .select("id")
    .where("organization_id", "is", null)
    .where("subject_type", "=", "organization")
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Tables in which any row was created by a user of the installation. */
const USED_TABLES = [
  "project",
  "workflow",
  "environment",
  "agent_execution",
  "agent",
  "secret",
  "member_group",
  "service_account",
] as const;

/** The rows that a first start creates, by their tables: the local runners of the members are one row. */
const FIRST_ROWS = ["organization", "member", "runner"] as const;

/** Returns whether there is only what a first start creates: an organization and its administrator. */
export async function isUnused(db: Reader): Promise<boolean> {
  for (const table of FIRST_ROWS) {
    const rows = await builderOf(db).selectFrom(table).select("id").limit(2).execute();
    if (rows.length !== 1) return false;
  }
  for (const table of USED_TABLES) {
    const row = await builderOf(db).selectFrom(table).select("id").limit(1).executeTakeFirst();
    if (row !== undefined) return false;
  }
  return true;
}

/** Returns the organization of a scope. */
export async function findOrganization(
  db: Reader,
  { organizationId }: Scope,
): Promise<OrganizationTable | undefined> {
  return builderOf(db)
    .selectFrom("organization")
    .selectAll()
    .where("id", "=", organizationId)
    .executeTakeFirst();
}

/** Changes the name or the invite domains of the scope's organization. */
export async function updateOrganization(
  tx: WriteTransaction,
  { organizationId }: Scope,
  before: OrganizationTable,
  { name, invite_domains }: Pick<OrganizationTable, "name" | "invite_domains">,
): Promise<OrganizationTable> {
  const after = { ...before, name, invite_domains, updated_at: tx.now };
  await builderOf(tx.db)
    .updateTable("organization")
    .set({ name, invite_domains, updated_at: tx.now })
    .where("id", "=", organizationId)
    .execute();
  tx.record({
    organizationId,
    type: "organization",
    id: organizationId,
    kind: "updated",
    before: organizationBody(before),
    after: organizationBody(after),
  });
  return after;
}

function organizationBody({ name, invite_domains }: OrganizationTable): string {
  return JSON.stringify({ name, inviteDomains: JSON.parse(invite_domains) });
}

/** Returns every organization, oldest first. Only for the operator. */
export async function findOrganizations(db: Reader): Promise<OrganizationTable[]> {
  return builderOf(db).selectFrom("organization").selectAll().orderBy("id").execute();
}

/**
 * Records an organization in the installation's chain, so that verification notices when all of its
 * rows were removed, including its own chain.
 */
export function recordInInstallation(
  tx: WriteTransaction,
  { id, name }: Pick<OrganizationTable, "id" | "name">,
): void {
  tx.record({
    organizationId: null,
    type: "organization",
    id,
    kind: "created",
    after: JSON.stringify({ name }),
  });
}

/**
 * Returns the organizations that the installation's chain does not name: an earlier release created
 * them.
 */
export async function findUnrecordedOrganizations(db: Reader): Promise<OrganizationTable[]> {
  return builderOf(db)
    .selectFrom("organization")
    .selectAll()
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom("audit_log")
            .select("audit_log.id")
            .where("audit_log.organization_id", "is", null)
            .where("audit_log.subject_type", "=", "organization")
            .whereRef("audit_log.subject_id", "=", "organization.id"),
        ),
      ),
    )
    .orderBy("id")
    .execute();
}

/** Returns every organization with its stored bytes, oldest first. Only for the operator. */
export async function findOrganizationsWithBytes(
  db: Reader,
): Promise<Pick<OrganizationTable & OrganizationStorageTable, "id" | "name" | "bytes">[]> {
  return builderOf(db)
    .selectFrom("organization")
    .innerJoin("organization_storage", "organization_storage.organization_id", "organization.id")
    .select(["organization.id", "organization.name", "organization_storage.bytes"])
    .orderBy("organization.id")
    .execute();
}

/**
 * Creates an organization. It must come first in its transaction: changes of its resources are
 * numbered by its row.
 */
export async function insertOrganization(
  tx: WriteTransaction,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<OrganizationTable> {
  const organization = {
    id,
    name,
    created_at: tx.now,
    updated_at: tx.now,
    sequence: 0,
    enterprise: 0,
    chain_hash: null,
    pruned_sequence: 0,
    invite_domains: "[]",
  };
  await builderOf(tx.db).insertInto("organization").values(organization).execute();
  recordInInstallation(tx, organization);
  tx.record({
    organizationId: id,
    type: "organization",
    id,
    kind: "created",
    after: JSON.stringify({ name }),
  });
  return organization;
}
