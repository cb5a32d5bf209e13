import { type ServiceAccountTrust, ServiceAccountTrustSchema } from "#gen/service/v1/service_account_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { ServiceAccountTrustTable } from "./identity-schema.ts";
import { removeToken } from "./token.ts";

/** A trust in its stored form. */
export type StoredTrust = ServiceAccountTrustTable;

/** Returns up to `limit` trusts after `after`, by id ascending. @param serviceAccountId its owner; undefined for any */
export async function findServiceAccountTrustPage(
  db: Reader,
  scope: Scope,
  serviceAccountId: string | undefined,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<ServiceAccountTrust>[]> {
  const own = builderOf(db)
    .selectFrom("service_account_trust")
    .select(["id", ...bodyColumns("service_account_trust")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  const query = serviceAccountId === undefined ? own : own.where("service_account_id", "=", serviceAccountId);
  const order: RowOrder = {
    columns: ["service_account_trust.id"],
    direction: "asc",
    after: after && [after.id],
  };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "service_account_trust", rows, positionById, serviceAccountTrustOfRow);
}

/** Returns a trust by its id. */
export async function findServiceAccountTrust(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<ServiceAccountTrustTable | undefined> {
  return builderOf(db)
    .selectFrom("service_account_trust")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .executeTakeFirst();
}

/** Returns the trusts of a service account of any organization, oldest first: its id comes with a token. */
export async function findTrustsOf(
  db: Reader,
  serviceAccountId: string,
): Promise<ServiceAccountTrustTable[]> {
  return builderOf(db)
    .selectFrom("service_account_trust")
    .selectAll()
    .where("service_account_id", "=", serviceAccountId)
    .orderBy("id")
    .execute();
}

/** Adds a trust; the record names the service account that has it. @param creatorAccountId null for none */
export async function insertServiceAccountTrust(
  tx: WriteTransaction,
  scope: Scope,
  trust: ServiceAccountTrust,
  creatorAccountId: string | null,
): Promise<void> {
  const body = toBody(ServiceAccountTrustSchema, trust);
  await builderOf(tx.db)
    .insertInto("service_account_trust")
    .values({
      id: trust.id,
      organization_id: scope.organizationId,
      service_account_id: trust.serviceAccountId,
      creator_account_id: creatorAccountId,
      body,
    })
    .execute();
  record(tx, scope, trust.serviceAccountId, { after: body });
}

/** Removes a trust with the tokens that were issued through it. */
export async function removeServiceAccountTrust(
  tx: WriteTransaction,
  scope: Scope,
  { id, service_account_id, body }: ServiceAccountTrustTable,
): Promise<void> {
  const tokens = await builderOf(tx.db)
    .selectFrom("token")
    .selectAll()
    .where("parent_id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .execute();
  for (const token of tokens) await removeToken(tx, scope, token);
  await builderOf(tx.db)
    .deleteFrom("service_account_trust")
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  record(tx, scope, service_account_id, { before: body });
}

export function serviceAccountTrustOfRow({
  body,
}: Pick<ServiceAccountTrustTable, "body">): ServiceAccountTrust {
  return fromBody(ServiceAccountTrustSchema, body);
}

/** Returns whether the account that created a trust is blocked, or its member of the scope's organization suspended. */
export async function isCreatorHeld(
  db: Reader,
  { organizationId }: Scope,
  creatorAccountId: string,
): Promise<boolean> {
  const held = await builderOf(db)
    .selectFrom("account")
    .leftJoin("member", (join) =>
      join
        .onRef("member.account_id", "=", "account.id")
        .on("member.organization_id", "=", organizationId)
        .on("member.left_at", "is", null),
    )
    .select("account.id")
    .where("account.id", "=", creatorAccountId)
    .where((eb) =>
      eb.or([eb("account.blocked_at", "is not", null), eb("member.suspended_at", "is not", null)]),
    )
    .executeTakeFirst();
  return held !== undefined;
}

/** Stores that a token of an issuer was exchanged. @returns false if it was exchanged before */
export async function insertMachineTokenUse(
  tx: WriteTransaction,
  hash: Uint8Array,
  expires_at: number,
): Promise<boolean> {
  const rows = builderOf(tx.db);
  const used = await rows
    .selectFrom("machine_token_use")
    .select("expires_at")
    .where("hash", "=", hash)
    .executeTakeFirst();
  if (used) return false;
  await rows.insertInto("machine_token_use").values({ hash, expires_at }).execute();
  return true;
}

/** Removes the exchanged tokens that expired before a time, in milliseconds since 1970 UTC. */
export async function removeMachineTokenUses(tx: WriteTransaction, before: number): Promise<void> {
  await builderOf(tx.db).deleteFrom("machine_token_use").where("expires_at", "<", before).execute();
}

/** Returns whether {@link removeMachineTokenUses} would remove anything. */
export async function hasEndedMachineTokenUses(db: Reader, before: number): Promise<boolean> {
  const row = await builderOf(db)
    .selectFrom("machine_token_use")
    .select("expires_at")
    .where("expires_at", "<", before)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

function record(
  tx: WriteTransaction,
  { organizationId }: Scope,
  serviceAccountId: string,
  { before = "{}", after = "{}" }: { readonly before?: string; readonly after?: string },
): void {
  tx.record({
    organizationId,
    type: "service_account",
    id: serviceAccountId,
    kind: "updated",
    before,
    after,
  });
}
