import { type SecurityPolicy, SecurityPolicySchema } from "#gen/service/v1/security_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { securityPolicySearchText } from "../../domain/policy/security-policy.ts";
import { checkDeadline } from "../expressions.ts";
import { firstRows, type RowOrder } from "../first-rows.ts";
import { fromBody, toBody } from "../json.ts";
import { bodyColumns, listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { matchesSearch } from "../scanned-search.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

const selectSecurityPolicy = prepared<{ id: string; organizationId: string }, { body: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("security_policy")
      .select("body")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function findSecurityPolicy(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<SecurityPolicy | undefined> {
  const [row] = await selectSecurityPolicy(db, { id, organizationId: scope.organizationId });
  return row && fromBody(SecurityPolicySchema, row.body);
}

const selectHolder = prepared<{ id: string; organizationId: string }, { id: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("environment")
      .select("id")
      .where("security_policy_id", "=", id)
      .where("organization_id", "=", organizationId)
      .limit(1),
);

/** Returns whether the policy applies in any environment. */
export async function appliesInEnvironment(db: Reader, scope: Scope, id: string): Promise<boolean> {
  return (await selectHolder(db, { id, organizationId: scope.organizationId })).length > 0;
}

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface SecurityPolicyFilter {
  readonly ids: readonly string[];
  /** Folded text. */
  readonly search: string;
}

/** Returns up to `limit` security policies after `after`, by id ascending. */
export async function findSecurityPolicyPage(
  db: Reader,
  scope: Scope,
  filter: SecurityPolicyFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<SecurityPolicy>[]> {
  const own = builderOf(db)
    .selectFrom("security_policy")
    .select(["security_policy.id", ...bodyColumns("security_policy")])
    .where(checkDeadline())
    .where("security_policy.organization_id", "=", scope.organizationId);
  let query = own;
  if (filter.ids.length > 0) query = query.where("security_policy.id", "in", filter.ids);
  if (filter.search !== "") query = query.where(matchesSearch("security_policy", filter.search));
  const order: RowOrder = { columns: ["security_policy.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "security_policy", rows, positionById, ({ body }) =>
    fromBody(SecurityPolicySchema, body),
  );
}

export async function insertSecurityPolicy(
  tx: WriteTransaction,
  scope: Scope,
  securityPolicy: SecurityPolicy,
): Promise<void> {
  const columns = changingColumns(securityPolicy);
  const { organizationId } = scope;
  await builderOf(tx.db)
    .insertInto("security_policy")
    .values({ ...columns, id: securityPolicy.id, organization_id: organizationId })
    .execute();
  tx.record({
    organizationId,
    type: "security_policy",
    id: securityPolicy.id,
    kind: "created",
    after: columns.body,
  });
}

export async function updateSecurityPolicy(
  tx: WriteTransaction,
  scope: Scope,
  before: SecurityPolicy,
  after: SecurityPolicy,
): Promise<void> {
  const columns = changingColumns(after);
  const { organizationId } = scope;
  await builderOf(tx.db)
    .updateTable("security_policy")
    .set(columns)
    .where("id", "=", after.id)
    .where("organization_id", "=", organizationId)
    .execute();
  tx.record({
    organizationId,
    type: "security_policy",
    id: after.id,
    kind: "updated",
    before: toBody(SecurityPolicySchema, before),
    after: columns.body,
  });
}

/** Removes the row permanently; no environment and no organization's policies may refer to it. */
export async function removeSecurityPolicy(
  tx: WriteTransaction,
  scope: Scope,
  securityPolicy: SecurityPolicy,
): Promise<void> {
  const { organizationId } = scope;
  await builderOf(tx.db)
    .deleteFrom("security_policy")
    .where("id", "=", securityPolicy.id)
    .where("organization_id", "=", organizationId)
    .execute();
  tx.record({
    organizationId,
    type: "security_policy",
    id: securityPolicy.id,
    kind: "deleted",
    before: toBody(SecurityPolicySchema, securityPolicy),
  });
}

function changingColumns(securityPolicy: SecurityPolicy) {
  return {
    search_text: securityPolicySearchText(securityPolicy),
    body: toBody(SecurityPolicySchema, securityPolicy),
  };
}
