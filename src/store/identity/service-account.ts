import { type ServiceAccount, ServiceAccountSchema } from "#gen/service/v1/service_account_pb.js";
import { isServiceAccountSuspended } from "../../domain/identity/service-account.ts";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { fold } from "../../domain/text/fold.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { ServiceAccountTable } from "./identity-schema.ts";

/** The conditions of a list: fields combine with AND; empty means any. */
export interface ServiceAccountFilter {
  readonly includeSuspended: boolean;
  readonly ids: readonly string[];
  /** Folded; empty means any. */
  readonly search: string;
}

/**
 * Returns up to `limit` service accounts after `after`, by id ascending.
 * @param now in milliseconds since 1970 UTC: a service account that is not valid then is suspended
 */
export async function findServiceAccountPage(
  db: Reader,
  scope: Scope,
  filter: ServiceAccountFilter,
  after: PagePosition | undefined,
  limit: number,
  now: number,
): Promise<ListedRow<ServiceAccount>[]> {
  const own = builderOf(db)
    .selectFrom("service_account")
    .select(["id", "suspended", "valid_until", ...bodyColumns("service_account")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (!filter.includeSuspended) query = query.where("valid_until", ">", now).where("suspended", "=", 0);
  if (filter.ids.length > 0) query = query.where("id", "in", filter.ids);
  if (filter.search !== "") query = query.where(matchesSearch("service_account", filter.search));
  const order: RowOrder = { columns: ["service_account.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "service_account", rows, positionById, (row) => serviceAccountOfRow(row, now));
}

export async function findServiceAccount(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<ServiceAccountTable | undefined> {
  return builderOf(db)
    .selectFrom("service_account")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .executeTakeFirst();
}

/**
 * Adds a service account.
 * @param creatorAccountId the account that is accountable for it; null for none
 */
export async function insertServiceAccount(
  tx: WriteTransaction,
  scope: Scope,
  serviceAccount: ServiceAccount,
  validUntilMs: number,
  creatorAccountId: string | null,
): Promise<void> {
  const { id, name } = serviceAccount;
  const body = toBody(ServiceAccountSchema, serviceAccount);
  await builderOf(tx.db)
    .insertInto("service_account")
    .values({
      id,
      organization_id: scope.organizationId,
      creator_account_id: creatorAccountId,
      valid_until: validUntilMs,
      suspended: 0,
      search_text: `${fold(name)}\n${id}`,
      body,
    })
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "service_account",
    id,
    kind: "created",
    after: body,
  });
}

/** Removes the row permanently; its tokens must have been removed. */
export async function removeServiceAccount(
  tx: WriteTransaction,
  scope: Scope,
  { id, body }: ServiceAccountTable,
): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("service_account")
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "service_account",
    id,
    kind: "deleted",
    before: body,
  });
}

/**
 * Returns a service account with its suspension, which the stored body does not contain: it depends
 * on the time.
 */
function serviceAccountOfRow(
  row: Pick<ServiceAccountTable, "body" | "suspended" | "valid_until">,
  now: number,
): ServiceAccount {
  const serviceAccount = fromBody(ServiceAccountSchema, row.body);
  serviceAccount.suspended = row.suspended === 1 || isServiceAccountSuspended(row.valid_until, now);
  return serviceAccount;
}
