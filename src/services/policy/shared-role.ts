import type { HandlerContext } from "@connectrpc/connect";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { type Owner, ownsFor, requireOwnershipFor } from "../../domain/identity/ownership.ts";
import { areAgentExecutionsShareable } from "../../domain/policy/agent-policy.ts";
import type { Policies } from "../../domain/policy/policies.ts";
import {
  findGroupsWithExecutions,
  findRoleOn,
  findRoleOnExecution,
} from "../../store/identity/role-assignment.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import type { Reader } from "../../store/store.ts";
import { operationOf } from "../call/call.ts";

/** A resource, and the role that one of the caller's groups must have on it for an operation. */
export interface NeededRole {
  readonly type: "workflow" | "project" | "agent_execution";
  readonly id: string;
  readonly role: ResourceRole;
}

/**
 * Requires that the caller owns a resource, has a role on it through one of its groups, or may do the operation on
 * any resource. Call it after the resource was found in the caller's organization.
 *
 * @param operation full name, such as `service.v1.ProjectService/UpdateProject`
 * @returns true when only a group's role allows the operation
 * @throws DomainError PERMISSION_DENIED
 */
export async function requireOwnershipOrRoleFor(
  db: Reader,
  operation: string,
  caller: Caller,
  needed: NeededRole,
  ...owners: readonly Owner[]
): Promise<boolean> {
  if (ownsFor(operation, caller, ...owners)) return false;
  if (await hasRole(db, caller, needed)) return true;
  requireOwnershipFor(operation, caller, ...owners);
  return false;
}

/** Like {@link requireOwnershipOrRoleFor}, for the operation of a request. */
export function requireOwnershipOrRole(
  db: Reader,
  ctx: HandlerContext,
  caller: Caller,
  needed: NeededRole,
  ...owners: readonly Owner[]
): Promise<boolean> {
  return requireOwnershipOrRoleFor(db, operationOf(ctx), caller, needed, ...owners);
}

/** Returns whether a group of the caller has a role on a resource. */
export async function hasRole(db: Reader, caller: Caller, { type, id, role }: NeededRole): Promise<boolean> {
  if (!isOfGroups(caller)) return false;
  if (type !== "agent_execution") return (await findRoleOn(db, caller, caller.subject.id, id)) >= role;
  if ((await findRoleOnExecution(db, caller, caller.subject.id, id)) < role) return false;
  return areAgentExecutionsShareable(await findPolicies(db, caller));
}

/** Returns whether an agent execution is shared with a group of the caller. */
export async function isSharedWith(
  db: Reader,
  caller: Caller,
  policies: Policies,
  executionId: string,
): Promise<boolean> {
  if (!isOfGroups(caller) || !areAgentExecutionsShareable(policies)) return false;
  return (await findRoleOnExecution(db, caller, caller.subject.id, executionId)) >= ResourceRole.READ;
}

/** Returns the ids of the caller's groups through which it may read shared agent executions. */
export async function findSharingGroups(db: Reader, caller: Caller, policies: Policies): Promise<string[]> {
  if (!isOfGroups(caller) || !areAgentExecutionsShareable(policies)) return [];
  return findGroupsWithExecutions(db, caller, caller.subject.id);
}

/** Returns whether group roles matter for a caller: only users and service accounts are members of groups. */
function isOfGroups({ role }: Caller): boolean {
  return role === "member" || role === "service_account";
}
