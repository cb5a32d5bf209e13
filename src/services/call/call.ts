import type { DescMethod } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { permissionDenied } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { type Grant, permissionOf } from "../../domain/identity/permissions.ts";
import { EXEMPT_FROM_QUOTA } from "../../domain/identity/storage-quota.ts";
import type { Actor, Store, WriteTransaction } from "../../store/store.ts";
import { requireNotRevoked } from "./authenticated-caller.ts";
import { replayContext, replayOrRun } from "./idempotency.ts";
import { withinQuota } from "./storage-quota.ts";

/** Where the gate leaves the caller for the operations behind it. */
export const callerKey: ContextKey<Caller | undefined> = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** Called by a stream once it has taken its place: the client is told so by the headers of the answer. */
export const streamBegunKey: ContextKey<() => void> = createContextKey<() => void>(() => {}, {
  description: "stream begun",
});

/** The caller of an operation; the gate lets nobody through without one. */
export function callerOf(ctx: HandlerContext): Caller {
  const caller = ctx.values.get(callerKey);
  if (!caller) throw new Error("an operation ran without a caller: its route is not behind the gate");
  return caller;
}

/** By method: a text that is put together anew is hashed again by every table that it is looked up in. */
const operationNames = new WeakMap<DescMethod, string>();

/** Full name of the operation, such as `service.v1.ProjectService/CreateProject`. */
export function operationOf({ method }: HandlerContext): string {
  let name = operationNames.get(method);
  if (name === undefined) {
    name = `${method.parent.typeName}/${method.name}`;
    operationNames.set(method, name);
  }
  return name;
}

/** On which resources the caller may do the operation; "none" has not come past the gate. */
export function grantOf(ctx: HandlerContext): Grant {
  return permissionOf(operationOf(ctx))?.grants[callerOf(ctx).role] ?? "none";
}

/**
 * Refuses a caller that may act only on its own resources and owns none of what
 * it asks for. Called after the resource was found in the caller's organization
 * and before anything is changed or told of it.
 *
 * @param owners whose the resource is: its creator, the runner that it is on
 * @throws DomainError PERMISSION_DENIED
 */
export function requireOwnership(ctx: HandlerContext, ...owners: readonly Owner[]): void {
  requireOwnershipFor(operationOf(ctx), callerOf(ctx), ...owners);
}

/** As refuseStranger, for an operation that is asked for in another way than by calling it. */
export function requireOwnershipFor(operation: string, caller: Caller, ...owners: readonly Owner[]): void {
  const needed = permissionOf(operation);
  if (needed?.grants[caller.role] === "any") return;
  const { id, principal } = caller.subject;
  if (owners.some((owner) => owner?.id === id && owner.principal === principal)) return;
  const permission = needed?.permission ?? "";
  throw permissionDenied(permission, `the permission ${permission} reaches only what is the caller's own`);
}

type Owner = Pick<Subject, "id" | "principal"> | undefined;

/**
 * Writes as the caller, in the name of the operation, unless its deadline has
 * passed. What `fn` returns must be the operation's answer: it is kept for a
 * request with an idempotency key, and a repetition gets it without `fn`. An
 * operation writes once.
 *
 * @param needsNoRoom whether this request may be granted to an organization that stores all that it may;
 *   by default what its operation says
 * @throws DomainError STORAGE_QUOTA_EXCEEDED when the organization would store more than it may
 * @throws DomainError ACCOUNT_BLOCKED, UNAUTHENTICATED or PERMISSION_DENIED for a
 *   caller that was cut off or lost the permission since the gate let it in
 */
export async function writeAsCaller<T>(
  store: Store,
  ctx: HandlerContext,
  fn: (tx: WriteTransaction, caller: Caller) => Promise<T>,
  needsNoRoom = isWithoutRoom(ctx),
): Promise<T> {
  const caller = callerOf(ctx);
  const actor: Actor = { id: caller.subject.id, principal: caller.subject.principal };
  const operation = operationOf(ctx);
  const once = await store.write(
    actor,
    operation,
    async (tx) => {
      await requireNotRevoked(tx, caller, operation);
      return replayOrRun(tx, ctx, caller, operation, () =>
        needsNoRoom ? fn(tx, caller) : withinQuota(tx, caller, () => fn(tx, caller)),
      );
    },
    { signal: ctx.signal },
  );
  return replayContext(ctx, once);
}

/** Runners report what they did of what was asked for before, and are bounded by their leases. */
function isWithoutRoom(ctx: HandlerContext): boolean {
  const operation = operationOf(ctx);
  return !operation.startsWith("service.v1.") || EXEMPT_FROM_QUOTA.has(operation);
}
