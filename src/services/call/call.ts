import type { DescMethod } from "@bufbuild/protobuf";
import { type ContextKey, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";
import { type Owner, requireOwnershipFor } from "../../domain/identity/ownership.ts";
import { type Grant, permissionOf } from "../../domain/identity/permissions.ts";
import { EXEMPT_FROM_QUOTA } from "../../domain/identity/storage-quota.ts";
import { formatTraceparent, type TraceParent } from "../../domain/trace/trace-context.ts";
import type { Actor, Locks, Store, WriteTransaction } from "../../store/store.ts";
import { requireNotRevoked } from "./authenticated-caller.ts";
import { replayOrRun, responseOf } from "./idempotency.ts";
import { readQuotaAhead, withinQuota } from "./storage-quota.ts";

/** The context key of the authenticated caller. */
export const callerKey: ContextKey<Caller | undefined> = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** The context key of the function that a stream calls once it has begun. It sends the response headers. */
export const streamBegunKey: ContextKey<() => void> = createContextKey<() => void>(() => {}, {
  description: "stream begun",
});

/** The context key of the call's trace and of its span in it. */
export const traceKey: ContextKey<TraceParent | undefined> = createContextKey<TraceParent | undefined>(
  undefined,
  { description: "trace" },
);

/** Returns the `traceparent` header for the call's outgoing requests, or undefined when the call has no trace. */
export function traceparentOfCall(ctx: HandlerContext): string | undefined {
  const trace = ctx.values.get(traceKey);
  return trace && formatTraceparent(trace, trace.parentSpanId);
}

/** One transaction that several operations write in. */
export interface SharedWrite {
  readonly tx: WriteTransaction;
  readonly caller: Caller;
}

/** The context key of the shared write that the operation belongs to; undefined when it writes alone. */
export const sharedWriteKey: ContextKey<SharedWrite | undefined> = createContextKey<SharedWrite | undefined>(
  undefined,
  { description: "shared write" },
);

/** Returns the caller of an operation. @throws Error for a route without authentication */
export function callerOf(ctx: HandlerContext): Caller {
  const caller = ctx.values.get(callerKey);
  if (!caller) throw new Error("an operation ran without a caller: its route has no authentication");
  return caller;
}

/** Cached by method, because every map lookup would hash a newly concatenated string again. */
const operationNames = new WeakMap<DescMethod, string>();

/** Returns the full name of the operation, such as `service.v1.ProjectService/CreateProject`. */
export function operationOf({ method }: HandlerContext): string {
  let name = operationNames.get(method);
  if (name === undefined) {
    name = `${method.parent.typeName}/${method.name}`;
    operationNames.set(method, name);
  }
  return name;
}

/** Returns the resources on which the caller may do the operation; authorization rejects "none". */
export function grantOf(ctx: HandlerContext): Grant {
  return permissionOf(operationOf(ctx))?.grants[callerOf(ctx).role] ?? "none";
}

/**
 * Requires that the caller owns the resource, unless it may act on any resource. Call it after the resource was found
 * in the caller's organization and before anything of it is changed or returned.
 *
 * @param owners the owners of the resource: its creator, the runner that it is on
 * @throws DomainError PERMISSION_DENIED
 */
export function requireOwnership(ctx: HandlerContext, ...owners: readonly Owner[]): void {
  requireOwnershipFor(operationOf(ctx), callerOf(ctx), ...owners);
}

/** Options of an operation's write. */
export interface CallerWriteOptions {
  /** True when the request is exempt from the storage quota; by default its operation decides. */
  readonly isExempt?: boolean | undefined;
  /** Locks in addition to the one of the caller's organization; a function as in {@link Locks}. Default none. */
  readonly alsoLocks?: Exclude<Locks, "installation">;
}

/**
 * Writes as the caller, in the name of the operation, unless its deadline has passed. An operation writes once.
 *
 * `fn` must return the operation's response. For a request with an idempotency key, the response is stored; a
 * repeated request gets the stored response and does not call `fn`. An operation of a shared write makes its changes
 * there: the operation that owns the shared write verifies the caller and stores the response.
 *
 * @throws DomainError STORAGE_QUOTA_EXCEEDED when the organization would exceed its quota
 * @throws DomainError ACCOUNT_BLOCKED, UNAUTHENTICATED or PERMISSION_DENIED for a caller that was blocked or lost the
 * permission since authentication
 */
export async function writeAsCaller<T>(
  store: Store,
  ctx: HandlerContext,
  fn: (tx: WriteTransaction, caller: Caller) => Promise<T>,
  options?: CallerWriteOptions,
): Promise<T> {
  return writeReadAsCaller(store, ctx, async (tx, caller) => () => fn(tx, caller), options);
}

/**
 * Like {@link writeAsCaller}, for an operation that reads first. `read` runs while the caller is verified and its
 * quota is read. It must not change or reject anything; it returns the function that writes.
 */
export async function writeReadAsCaller<T>(
  store: Store,
  ctx: HandlerContext,
  read: (tx: WriteTransaction, caller: Caller) => Promise<() => Promise<T>>,
  { isExempt = isExemptFromQuota(ctx), alsoLocks }: CallerWriteOptions = {},
): Promise<T> {
  const shared = ctx.values.get(sharedWriteKey);
  if (shared) {
    const { tx, caller } = shared;
    const write = await read(tx, caller);
    return isExempt ? write() : withinQuota(tx, caller, write);
  }
  const operation = operationOf(ctx);
  const replay = await writeReadPartAsCaller(
    store,
    ctx,
    async (tx, caller) => {
      const [write] = await Promise.all([
        read(tx, caller),
        isExempt ? undefined : readQuotaAhead(tx, caller),
      ]);
      return () =>
        replayOrRun(tx, ctx, caller, operation, () => (isExempt ? write() : withinQuota(tx, caller, write)));
    },
    alsoLocks,
  );
  return responseOf(ctx, replay);
}

/** Milliseconds after which one of several transactions ends. Others wait at most this long, plus the last step. */
export const PART_MS = 25;

/**
 * Writes one of several transactions of an operation. A single transaction would block other writes for too long.
 * Ignores idempotency keys and quotas.
 *
 * @throws DomainError ACCOUNT_BLOCKED, UNAUTHENTICATED or PERMISSION_DENIED as writeAsCaller
 */
export function writePartAsCaller<T>(
  store: Store,
  ctx: HandlerContext,
  fn: (tx: WriteTransaction, caller: Caller) => Promise<T>,
  alsoLocks: CallerWriteOptions["alsoLocks"] = [],
): Promise<T> {
  return writeReadPartAsCaller(store, ctx, async (tx, caller) => () => fn(tx, caller), alsoLocks);
}

/**
 * Like {@link writePartAsCaller}, for a part that reads first. `read` runs while the caller is verified. It must not
 * change anything; it returns the function that writes.
 */
export function writeReadPartAsCaller<T>(
  store: Store,
  ctx: HandlerContext,
  read: (tx: WriteTransaction, caller: Caller) => Promise<() => Promise<T>>,
  alsoLocks: CallerWriteOptions["alsoLocks"] = [],
): Promise<T> {
  const caller = callerOf(ctx);
  const { organizationId } = caller;
  const actor: Actor = { id: caller.subject.id, principal: caller.subject.principal };
  const operation = operationOf(ctx);
  return store.write(
    actor,
    operation,
    async (tx) => {
      const reading = read(tx, caller);
      // A read error matters only when the caller may write.
      reading.catch(() => {});
      await requireNotRevoked(tx, caller, operation);
      const write = await reading;
      return write();
    },
    {
      signal: ctx.signal,
      trace: ctx.values.get(traceKey),
      locks:
        typeof alsoLocks === "function"
          ? async (db) => [organizationId, ...(await alsoLocks(db))]
          : [organizationId, ...alsoLocks],
    },
  );
}

/**
 * Returns whether the operation is exempt. Runner operations are: they report on earlier requests, and leases bound
 * them.
 */
function isExemptFromQuota(ctx: HandlerContext): boolean {
  const operation = operationOf(ctx);
  return !operation.startsWith("service.v1.") || EXEMPT_FROM_QUOTA.has(operation);
}
