import { create } from "@bufbuild/protobuf";
import { type OrganizationPolicies, OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import { type ConfiguredPolicies, effectivePolicies, type Policies } from "../../domain/policy/policies.ts";
import { fromBody, toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

const selectPolicies = prepared<{ organizationId: string }, { body: string; origins: string }>(
  (db, { organizationId }) =>
    db
      .selectFrom("organization_policies")
      .select(["body", "origins"])
      .where("organization_id", "=", organizationId),
);

/** Returns the policies that the organization has set; none if it has set none. */
export async function findSetPolicies(db: Reader, scope: Scope): Promise<ConfiguredPolicies> {
  const [row] = await selectPolicies(db, { organizationId: scope.organizationId });
  if (!row) return { policies: create(OrganizationPoliciesSchema), origins: {} };
  return { policies: fromBody(OrganizationPoliciesSchema, row.body), origins: JSON.parse(row.origins) };
}

/** Returns the policies that apply in the organization. */
export async function findPolicies(db: Reader, scope: Scope): Promise<Policies> {
  return effectivePolicies(scope.organizationId, await findSetPolicies(db, scope));
}

const upsertRow = prepared<{ organizationId: string; body: string; origins: string }, unknown>(
  (db, { organizationId, body, origins }) =>
    db
      .insertInto("organization_policies")
      .values({ organization_id: organizationId, body, origins })
      .onConflict((conflict) => conflict.column("organization_id").doUpdateSet({ body, origins })),
);

/** Replaces the policies that the organization has set; equal ones are no change. */
export async function updatePolicies(
  tx: WriteTransaction,
  scope: Scope,
  before: ConfiguredPolicies,
  after: ConfiguredPolicies,
): Promise<void> {
  const { organizationId } = scope;
  const [old, body] = [before, after].map(({ policies }) => toBody(OrganizationPoliciesSchema, policies));
  const origins = JSON.stringify(after.origins);
  if (body === undefined || (body === old && origins === JSON.stringify(before.origins))) return;
  await upsertRow(tx.db, { organizationId, body, origins });
  tx.record({
    organizationId,
    type: "organization_policies",
    id: organizationId,
    kind: "updated",
    ...(old !== undefined && { before: old }),
    after: body,
  });
}

/**
 * Returns the organizations that have set any policy, with their policies. For jobs, so without a
 * scope.
 */
export async function findAllSetPolicies(
  db: Reader,
): Promise<(Scope & ConfiguredPolicies & { readonly enterprise: boolean })[]> {
  const rows = await builderOf(db)
    .selectFrom("organization_policies")
    .innerJoin("organization", "organization.id", "organization_policies.organization_id")
    .select([
      "organization.id as organizationId",
      "organization.enterprise",
      "organization_policies.body",
      "organization_policies.origins",
    ])
    .orderBy("organization.id")
    .execute();
  return rows.map(({ organizationId, enterprise, body, origins }) => ({
    organizationId,
    enterprise: enterprise === 1,
    policies: fromBody(OrganizationPoliciesSchema, body),
    origins: JSON.parse(origins),
  }));
}

/** Returns all organizations, with the policies that each has set. For retention, so without a scope. */
export async function findRetainingOrganizations(
  db: Reader,
): Promise<(Scope & { readonly name: string; readonly policies: OrganizationPolicies })[]> {
  const rows = await builderOf(db)
    .selectFrom("organization")
    .leftJoin("organization_policies", "organization_policies.organization_id", "organization.id")
    .select(["organization.id as organizationId", "organization.name", "organization_policies.body"])
    .orderBy("organization.id")
    .execute();
  return rows.map(({ organizationId, name, body }) => ({
    organizationId,
    name,
    policies: body === null ? create(OrganizationPoliciesSchema) : fromBody(OrganizationPoliciesSchema, body),
  }));
}
