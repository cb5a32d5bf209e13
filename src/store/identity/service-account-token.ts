import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ServiceAccountToken, ServiceAccountTokenSchema } from "#gen/service/v1/service_account_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";
import type { TokenTable } from "./identity-schema.ts";

/** The conditions of a list of service account tokens; undefined means any. */
export interface ServiceAccountTokenFilter {
  readonly serviceAccountId?: string | undefined;
  readonly creatorAccountId?: string | undefined;
}

/**
 * Returns up to `limit` tokens of service accounts after `after`, by id ascending, including
 * expired and disabled ones.
 */
export async function findServiceAccountTokenPage(
  db: Reader,
  scope: Scope,
  { serviceAccountId, creatorAccountId }: ServiceAccountTokenFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<ServiceAccountToken>[]> {
  const own = builderOf(db)
    .selectFrom("token")
    .select(["id", "last_used_at", ...bodyColumns("token")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId)
    .where("kind", "=", "service_account");
  let query = own;
  if (serviceAccountId !== undefined) query = query.where("subject_id", "=", serviceAccountId);
  if (creatorAccountId !== undefined) query = query.where("creator_account_id", "=", creatorAccountId);
  const order: RowOrder = { columns: ["token.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "token", rows, positionById, serviceAccountTokenOfRow);
}

/** Returns a token of a service account by its own id. */
export async function findServiceAccountToken(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<TokenTable | undefined> {
  return builderOf(db)
    .selectFrom("token")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .where("kind", "=", "service_account")
    .executeTakeFirst();
}

export function serviceAccountTokenOfRow(
  row: Pick<TokenTable, "body" | "last_used_at">,
): ServiceAccountToken {
  const token = fromBody(ServiceAccountTokenSchema, row.body);
  if (row.last_used_at !== null) token.lastUsed = timestampFromMs(row.last_used_at);
  return token;
}
