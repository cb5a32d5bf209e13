import type { Subject } from "#gen/service/v1/identity_pb.js";
import { permissionDenied } from "../error.ts";
import type { Caller } from "./caller.ts";
import { permissionOf } from "./permissions.ts";

/** An owner of a resource: its creator, or the runner that it is on. */
export type Owner = Pick<Subject, "id" | "principal"> | undefined;

/** Returns whether the caller owns a resource, or may do the operation on any. @param operation as in {@link requireOwnershipFor} */
export function ownsFor(operation: string, caller: Caller, ...owners: readonly Owner[]): boolean {
  if (permissionOf(operation)?.grants[caller.role] === "any") return true;
  const { id, principal } = caller.subject;
  return owners.some((owner) => owner?.id === id && owner.principal === principal);
}

/**
 * Requires that the caller owns a resource, unless it may do the operation on any resource.
 * @param operation full name, such as `service.v1.ProjectService/GetProject`
 * @throws DomainError PERMISSION_DENIED
 */
export function requireOwnershipFor(operation: string, caller: Caller, ...owners: readonly Owner[]): void {
  if (ownsFor(operation, caller, ...owners)) return;
  const permission = permissionOf(operation)?.permission ?? "";
  throw permissionDenied(permission, `the permission ${permission} reaches only what is the caller's own`);
}

/** Requires that the caller's role has the permission of an operation, if only for its own. @throws DomainError PERMISSION_DENIED */
export function requireGranted(operation: string, { role }: Caller): void {
  const needed = permissionOf(operation);
  if (needed?.grants[role] !== "none") return;
  throw permissionDenied(needed.permission, `the permission ${needed.permission} is missing`);
}

/** Returns the permission of an operation when the caller's grant has changed since authentication; otherwise undefined. */
export function changedPermission(caller: Caller, now: Caller, operation: string): string | undefined {
  const needed = permissionOf(operation);
  if (!needed || needed.grants[now.role] === needed.grants[caller.role]) return undefined;
  return needed.permission;
}

/** Requires that the caller's grant has not changed since authentication. @throws DomainError PERMISSION_DENIED */
export function requireSameGrant(caller: Caller, now: Caller, operation: string): void {
  const permission = changedPermission(caller, now, operation);
  if (permission === undefined) return;
  throw permissionDenied(permission, `the permission ${permission} has changed`);
}
