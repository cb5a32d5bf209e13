import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { type RoleAssignment, RoleAssignmentSchema } from "#gen/service/v1/group_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../domain/page.ts";
import { checkDeadline, unindexed } from "../expressions.ts";
import { firstOfFew, type RowOrder } from "../first-rows.ts";
import { toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { RoleAssignmentTable } from "./identity-schema.ts";

/** Maximum bytes of an assignment in JSON. */
const ASSIGNMENT_BYTES = 1_024;

const selectAssignment = prepared<{ id: string; organizationId: string }, RoleAssignmentTable>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("role_assignment")
      .selectAll()
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Returns an assignment by its id. */
export async function findRoleAssignment(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<RoleAssignment | undefined> {
  const [row] = await selectAssignment(db, { id, organizationId });
  return row && assignmentOfRow(row);
}

/** Returns all assignments on a resource, by id ascending: as many as the contract allows. */
export async function findRoleAssignmentsOn(
  db: Reader,
  scope: Scope,
  resourceId: string,
): Promise<RoleAssignment[]> {
  const rows = await assignmentsOn(db, scope, resourceId).orderBy("id").execute();
  return rows.map(assignmentOfRow);
}

/** Returns up to `limit` assignments on a resource after `after`, by id ascending. */
export async function findRoleAssignmentPage(
  db: Reader,
  scope: Scope,
  resourceId: string,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<RoleAssignment>[]> {
  const order: RowOrder = { columns: ["role_assignment.id"], direction: "asc", after: after && [after.id] };
  const rows = await firstOfFew(assignmentsOn(db, scope, resourceId).where(checkDeadline()), order, limit);
  return rows.map((row) => ({
    position: positionById(row),
    bytes: ASSIGNMENT_BYTES,
    read: () => assignmentOfRow(row),
  }));
}

/** Adds an assignment. @param ownerId the subject besides administrators that may read its events; null for everybody */
export async function insertRoleAssignment(
  tx: WriteTransaction,
  { organizationId }: Scope,
  assignment: RoleAssignment,
  ownerId: string | null,
): Promise<RoleAssignment> {
  const { id, groupId, resourceType, resourceId, role, creator, createdAt } = assignment;
  const at = createdAt ? timestampMs(createdAt) : tx.now;
  await builderOf(tx.db)
    .insertInto("role_assignment")
    .values({
      id,
      organization_id: organizationId,
      group_id: groupId,
      resource_type: resourceType,
      resource_id: resourceId,
      role,
      creator_id: creator?.id ?? "",
      creator_principal: creator?.principal ?? 0,
      created_at: at,
      updated_at: at,
    })
    .execute();
  const after = toBody(RoleAssignmentSchema, assignment);
  tx.record({ organizationId, type: "role_assignment", id, kind: "created", after, facts: { ownerId } });
  return assignment;
}

/** Changes the role of an assignment. @param ownerId as in {@link insertRoleAssignment} */
export async function updateRoleAssignment(
  tx: WriteTransaction,
  { organizationId }: Scope,
  before: RoleAssignment,
  after: RoleAssignment,
  ownerId: string | null,
): Promise<RoleAssignment> {
  const { id, role, updatedAt } = after;
  await builderOf(tx.db)
    .updateTable("role_assignment")
    .set({ role, updated_at: updatedAt ? timestampMs(updatedAt) : tx.now })
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .execute();
  tx.record({
    organizationId,
    type: "role_assignment",
    id,
    kind: "updated",
    before: toBody(RoleAssignmentSchema, before),
    after: toBody(RoleAssignmentSchema, after),
    facts: { ownerId },
  });
  return after;
}

/** Removes an assignment permanently. @param ownerId as in {@link insertRoleAssignment} */
export async function removeRoleAssignment(
  tx: WriteTransaction,
  { organizationId }: Scope,
  assignment: RoleAssignment,
  ownerId: string | null,
): Promise<void> {
  const { id } = assignment;
  await builderOf(tx.db)
    .deleteFrom("role_assignment")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .execute();
  const before = toBody(RoleAssignmentSchema, assignment);
  tx.record({ organizationId, type: "role_assignment", id, kind: "deleted", before, facts: { ownerId } });
}

/** Removes all assignments on a resource that goes. @param ownerId as in {@link insertRoleAssignment} */
export async function removeRoleAssignmentsOn(
  tx: WriteTransaction,
  scope: Scope,
  resourceId: string,
  ownerId: string | null,
): Promise<void> {
  for (const assignment of await findRoleAssignmentsOn(tx.db, scope, resourceId))
    await removeRoleAssignment(tx, scope, assignment, ownerId);
}

interface RoleKey {
  readonly organizationId: string;
  readonly subjectId: string;
  readonly resourceId: string;
}

const selectRole = prepared<RoleKey, { role: number | null }>(
  (db, { organizationId, subjectId, resourceId }) =>
    db
      .selectFrom("role_assignment")
      .innerJoin("group_membership", "group_membership.group_id", "role_assignment.group_id")
      .select((eb) => eb.fn.max("role_assignment.role").as("role"))
      .where("role_assignment.resource_id", "=", resourceId)
      .where(unindexed("role_assignment.organization_id"), "=", organizationId)
      .where("group_membership.subject_id", "=", subjectId)
      .where(unindexed("group_membership.organization_id"), "=", organizationId),
);

/** Returns the highest role that the groups of a user or service account have on a resource; 0 for none. */
export async function findRoleOn(
  db: Reader,
  { organizationId }: Scope,
  subjectId: string,
  resourceId: string,
): Promise<number> {
  const [row] = await selectRole(db, { organizationId, subjectId, resourceId });
  return row?.role ?? 0;
}

const selectRoleOnExecution = prepared<RoleKey, { role: number | null }>(
  (db, { organizationId, subjectId, resourceId }) =>
    db
      .selectFrom("agent_execution as run")
      .innerJoin("role_assignment", (join) =>
        join.on((eb) => eb("role_assignment.resource_id", "in", [eb.ref("run.id"), eb.ref("run.parent_id")])),
      )
      .innerJoin("group_membership", "group_membership.group_id", "role_assignment.group_id")
      .select((eb) => eb.fn.max("role_assignment.role").as("role"))
      .where("run.id", "=", resourceId)
      .where(unindexed("run.organization_id"), "=", organizationId)
      .where(unindexed("role_assignment.organization_id"), "=", organizationId)
      .where("group_membership.subject_id", "=", subjectId)
      .where(unindexed("group_membership.organization_id"), "=", organizationId),
);

/** Returns the highest role that the groups of a subject have on an agent execution, or on its parent; 0 for none. */
export async function findRoleOnExecution(
  db: Reader,
  { organizationId }: Scope,
  subjectId: string,
  executionId: string,
): Promise<number> {
  const key = { organizationId, subjectId, resourceId: executionId };
  return (await selectRoleOnExecution(db, key))[0]?.role ?? 0;
}

const selectGroupsWithExecutions = prepared<{ organizationId: string; subjectId: string }, { id: string }>(
  (db, { organizationId, subjectId }) =>
    db
      .selectFrom("group_membership")
      .select("group_membership.group_id as id")
      .where("group_membership.organization_id", "=", organizationId)
      .where("group_membership.subject_id", "=", subjectId)
      .where((eb) =>
        eb.exists(
          eb
            .selectFrom("role_assignment")
            .select("role_assignment.id")
            .whereRef("role_assignment.group_id", "=", "group_membership.group_id")
            .where("role_assignment.resource_type", "=", eb.lit(ResourceType.AGENT_EXECUTION)),
        ),
      ),
);

/** Returns the ids of the groups of a user or service account with which any agent execution is shared. */
export async function findGroupsWithExecutions(
  db: Reader,
  { organizationId }: Scope,
  subjectId: string,
): Promise<string[]> {
  return (await selectGroupsWithExecutions(db, { organizationId, subjectId })).map(({ id }) => id);
}

function assignmentsOn(db: Reader, { organizationId }: Scope, resourceId: string) {
  return builderOf(db)
    .selectFrom("role_assignment")
    .selectAll()
    .where("resource_id", "=", resourceId)
    .where(unindexed("role_assignment.organization_id"), "=", organizationId);
}

function assignmentOfRow(row: RoleAssignmentTable): RoleAssignment {
  return create(RoleAssignmentSchema, {
    id: row.id,
    organizationId: row.organization_id,
    groupId: row.group_id,
    resourceType: row.resource_type,
    resourceId: row.resource_id,
    role: row.role,
    creator: { id: row.creator_id, principal: row.creator_principal },
    createdAt: timestampFromMs(row.created_at),
    updatedAt: timestampFromMs(row.updated_at),
  });
}
