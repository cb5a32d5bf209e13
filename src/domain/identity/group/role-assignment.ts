import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { type ResourceRole, type RoleAssignment, RoleAssignmentSchema } from "#gen/service/v1/group_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { limitReached, phaseUnsuitable, valueTaken, valueUnusable } from "../../error.ts";

/** Most groups that one resource is shared with (contract, CreateRoleAssignment). */
const MAX_GROUPS_OF_RESOURCE = 25;

const SHAREABLE_TYPES = [ResourceType.WORKFLOW, ResourceType.PROJECT, ResourceType.AGENT_EXECUTION] as const;

/** The kinds of resources that are shared with groups. */
export type ShareableType = (typeof SHAREABLE_TYPES)[number];

/**
 * Requires that every server knows the roles of groups.
 * @throws DomainError PHASE_UNSUITABLE while servers of the release before run
 */
export function requireRolesKnown(areKnown: boolean): void {
  if (areKnown) return;
  const message = "resources can be shared with groups once every server runs this release";
  throw phaseUnsuitable("installation", "UPGRADING", message);
}

/** Requires that resources of a kind are shared with groups. @throws DomainError VALUE_UNUSABLE */
export function requireShareable(type: ResourceType, field: string): asserts type is ShareableType {
  if ((SHAREABLE_TYPES as readonly ResourceType[]).includes(type)) return;
  throw valueUnusable(field, "only workflows, projects and agent runs are shared with groups");
}

/** Requires room for one more group that a resource is shared with. @throws DomainError LIMIT_REACHED */
export function requireRoomForAssignment(count: number): void {
  if (count < MAX_GROUPS_OF_RESOURCE) return;
  const message = `a resource is shared with ${MAX_GROUPS_OF_RESOURCE} groups at most`;
  throw limitReached("role assignment", MAX_GROUPS_OF_RESOURCE, message);
}

/** Requires that a group's assignment on a resource has the role that is asked for. @throws DomainError VALUE_TAKEN */
export function requireSameRole(existing: RoleAssignment, role: ResourceRole): void {
  if (existing.role === role) return;
  const message = "the group has another role on this resource: change it with UpdateRoleAssignment";
  throw valueTaken("role assignment", "group_id", message);
}

/** The values that a new assignment is created from. */
export interface RoleAssignmentTemplate {
  readonly id: string;
  readonly organizationId: string;
  readonly groupId: string;
  readonly resourceType: ShareableType;
  readonly resourceId: string;
  readonly role: ResourceRole;
  readonly creator: Subject;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns a new assignment. */
export function newRoleAssignment({ now, ...values }: RoleAssignmentTemplate): RoleAssignment {
  const at = timestampFromMs(now);
  return create(RoleAssignmentSchema, { ...values, createdAt: at, updatedAt: at });
}

/** Returns an assignment with another role. @param now in milliseconds since 1970 UTC */
export function updatedRoleAssignment(
  before: RoleAssignment,
  role: ResourceRole,
  now: number,
): RoleAssignment {
  const after = clone(RoleAssignmentSchema, before);
  Object.assign(after, { role, updatedAt: timestampFromMs(now) });
  return after;
}
