import {
  type HostAuthenticationToken,
  HostAuthenticationTokenSchema,
} from "#gen/service/v1/runner_configuration_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** The conditions of a list; all must hold. */
export interface HostTokenFilter {
  readonly runnerId?: string;
  /** Each names a subject, or restricts its kind; a token must match every one of them. */
  readonly subjects: readonly { readonly id: string; readonly principal?: number }[];
}

/** Returns up to `limit` host tokens after `after`, by id ascending, without their secrets. */
export async function findHostTokenPage(
  db: Reader,
  scope: Scope,
  filter: HostTokenFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<HostAuthenticationToken>[]> {
  const own = builderOf(db)
    .selectFrom("host_token")
    .select(["id", ...bodyColumns("host_token")])
    .where(checkDeadline())
    .where("organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.runnerId !== undefined) query = query.where("runner_id", "=", filter.runnerId);
  for (const { id, principal } of filter.subjects) {
    query = query.where("subject_id", "=", id);
    if (principal !== undefined) query = query.where("subject_principal", "=", principal);
  }
  const order: RowOrder = { columns: ["host_token.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "host_token", rows, positionById, ({ body }) =>
    fromBody(HostAuthenticationTokenSchema, body),
  );
}
