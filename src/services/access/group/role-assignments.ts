import type { HandlerContext } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { ResourceRole, type RoleAssignment } from "#gen/service/v1/group_pb.js";
import type {
  CreateRoleAssignmentRequest,
  DeleteRoleAssignmentRequest,
  ListRoleAssignmentsRequest,
  UpdateRoleAssignmentRequest,
} from "#gen/service/v1/group_service_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { DomainError, notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import {
  newRoleAssignment,
  requireRolesKnown,
  requireRoomForAssignment,
  requireSameRole,
  requireShareable,
  type ShareableType,
  updatedRoleAssignment,
} from "../../../domain/identity/group/role-assignment.ts";
import { requireAgentExecutionsShareable } from "../../../domain/policy/agent-policy.ts";
import { mayStore, ROLE_ASSIGNMENTS_LEVEL } from "../../../store/feature-level.ts";
import { findGroup } from "../../../store/identity/group.ts";
import {
  findRoleAssignment,
  findRoleAssignmentPage,
  findRoleAssignmentsOn,
  insertRoleAssignment,
  removeRoleAssignment,
  updateRoleAssignment,
} from "../../../store/identity/role-assignment.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import { findProject } from "../../../store/project/project.ts";
import type { Reader, WriteTransaction } from "../../../store/store.ts";
import { findWorkflow } from "../../../store/workflow/workflow.ts";
import { getReadableAgentExecution } from "../../agent/reading/agent-reading.ts";
import { callerOf, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { type ListDependencies, listPage } from "../../call/page.ts";
import { type NeededRole, requireOwnershipOrRole } from "../../policy/shared-role.ts";

type Dependencies = Pick<ServiceDependencies, "store">;

/** Shares a resource with a group. */
export function createRoleAssignment(
  { store }: Dependencies,
  { groupId, resourceType, resourceId, role }: CreateRoleAssignmentRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    if (!(await findGroup(tx.db, caller, groupId))) throw notFound("group");
    requireShareable(resourceType, "resourceType");
    const resource = await getShareableResource(tx.db, caller, resourceType, resourceId);
    await requireMayShare(tx, ctx, caller, resource);
    requireRolesKnown(mayStore(tx, ROLE_ASSIGNMENTS_LEVEL));
    if (resourceType === ResourceType.AGENT_EXECUTION)
      requireAgentExecutionsShareable(await findPolicies(tx.db, caller));
    const others = await findRoleAssignmentsOn(tx.db, caller, resourceId);
    const existing = others.find((each) => each.groupId === groupId);
    if (existing) {
      requireSameRole(existing, role);
      return { roleAssignment: existing };
    }
    requireRoomForAssignment(others.length);
    const { organizationId, subject: creator } = caller;
    const facts = { organizationId, groupId, resourceType, resourceId, role, creator };
    const assignment = newRoleAssignment({ id: tx.newId(), ...facts, now: tx.now });
    return { roleAssignment: await insertRoleAssignment(tx, caller, assignment, ownerOf(resource)) };
  });
}

/** Sets the role of an assignment. */
export function changeRoleAssignment(
  { store }: Dependencies,
  { roleAssignmentId, role }: UpdateRoleAssignmentRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const { assignment, resource } = await getChangeableAssignment(tx, ctx, caller, roleAssignmentId);
    if (assignment.role === role) return { roleAssignment: assignment };
    const after = updatedRoleAssignment(assignment, role, tx.now);
    return {
      roleAssignment: await updateRoleAssignment(tx, caller, assignment, after, ownerOf(resource)),
    };
  });
}

/** Ends the sharing of a resource with a group. */
export function deleteRoleAssignment(
  { store }: Dependencies,
  { roleAssignmentId }: DeleteRoleAssignmentRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const { assignment, resource } = await getChangeableAssignment(tx, ctx, caller, roleAssignmentId);
    await removeRoleAssignment(tx, caller, assignment, ownerOf(resource));
    return {};
  });
}

/** Returns one page of the groups that a resource is shared with. */
export async function listRoleAssignments(
  deps: ListDependencies,
  { resourceType, resourceId, pagination }: ListRoleAssignmentsRequest,
  ctx: HandlerContext,
) {
  const caller = callerOf(ctx);
  requireShareable(resourceType, "resourceType");
  await getShareableResource(deps.store.reader, caller, resourceType, resourceId);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListRoleAssignments",
    parts: [{ resourceType, resourceId }],
    pagination,
    find: (db, after, limit) => findRoleAssignmentPage(db, caller, resourceId, after, limit),
  });
  return { ...page, roleAssignments: rows };
}

/**
 * Returns whether a caller may read a resource, which must be of a kind that can be shared with groups.
 *
 * @param field the request's field that contains the kind of the resource
 * @throws DomainError VALUE_UNUSABLE for another kind of resource
 */
export async function isReadableResource(
  db: Reader,
  caller: Caller,
  { resourceType, resourceId }: { readonly resourceType: ResourceType; readonly resourceId: string },
  field: string,
): Promise<boolean> {
  requireShareable(resourceType, field);
  try {
    await getShareableResource(db, caller, resourceType, resourceId);
    return true;
  } catch (error) {
    if (error instanceof DomainError && error.reason === ErrorReason.NOT_FOUND) return false;
    throw error;
  }
}

/** A resource that the caller may read. */
interface ShareableResource {
  readonly type: NeededRole["type"];
  readonly id: string;
  readonly creator: Subject | undefined;
}

/** @throws DomainError NOT_FOUND */
async function getShareableResource(
  db: Reader,
  caller: Caller,
  resourceType: ShareableType,
  id: string,
): Promise<ShareableResource> {
  if (resourceType === ResourceType.AGENT_EXECUTION) {
    const { execution } = await getReadableAgentExecution(db, caller, id);
    return { type: "agent_execution", id, creator: execution.metadata?.creator };
  }
  const type = resourceType === ResourceType.WORKFLOW ? "workflow" : "project";
  const find = type === "workflow" ? findWorkflow : findProject;
  const found = await find(db, caller, id);
  if (!found) throw notFound(type);
  return { type, id, creator: found.metadata?.creator };
}

async function requireMayShare(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  { type, id, creator }: ShareableResource,
): Promise<void> {
  await requireOwnershipOrRole(tx.db, ctx, caller, { type, id, role: ResourceRole.ADMIN }, creator);
}

/** @throws DomainError NOT_FOUND, PERMISSION_DENIED */
async function getChangeableAssignment(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<{ readonly assignment: RoleAssignment; readonly resource: ShareableResource }> {
  const assignment = await findRoleAssignment(tx.db, caller, id);
  if (!assignment) throw notFound("role assignment");
  const { resourceType, resourceId } = assignment;
  requireShareable(resourceType, "resourceType");
  const resource = await getShareableResource(tx.db, caller, resourceType, resourceId);
  await requireMayShare(tx, ctx, caller, resource);
  return { assignment, resource };
}

/** Returns the only subject that may read the events of a resource's assignments; null when everybody may. */
function ownerOf({ type, creator }: ShareableResource): string | null {
  return type === "agent_execution" ? (creator?.id ?? "") : null;
}
