import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireHeldLease } from "../../domain/runner/lease.ts";
import { STOP, STOP_GIVE_BACK } from "../../store/runner/work.ts";
import { findLease, type StoredLease } from "../../store/runner/work-lease.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";

/** The maximum number of attempts at a piece of work (contract, Work.attempt). */
export const MAX_ATTEMPTS = 3;

/** The dependencies of the services of runners. */
export interface LeaseDependencies extends StreamDependencies {
  /** Duration of a lease, from its start or last renewal. */
  readonly leaseMs: number;
  /** Logs why a part of a call failed when it is not the caller's fault and the rest of the call goes on. */
  readonly onPartFailure: (operation: string, cause: unknown) => void;
}

/** A runner's reference to the lease that it holds. */
export interface LeaseReference {
  readonly leaseId: string;
  readonly fence: bigint;
}

/**
 * Writes as the runner that holds a lease. Checks the lease inside the transaction, so that a late report changes
 * nothing.
 *
 * @throws DomainError LEASE_LOST when the runner no longer holds the lease; ACCOUNT_BLOCKED when the account of the
 * work is blocked
 */
export function writeUnderLease<T>(
  { store }: Pick<ServiceDependencies, "store">,
  name: LeaseReference,
  ctx: HandlerContext,
  fn: (tx: WriteTransaction, scope: Scope, lease: StoredLease) => Promise<T>,
): Promise<T> {
  return writeAsCaller(store, ctx, async (tx, caller) =>
    fn(tx, caller, await requireLease(tx.db, caller, name, tx.now)),
  );
}

/**
 * Returns the lease that a runner holds, for reads.
 *
 * @throws DomainError as {@link writeUnderLease}
 */
export async function requireLease(
  db: Reader,
  caller: Caller,
  { leaseId, fence }: LeaseReference,
  now: number,
): Promise<StoredLease> {
  return requireHeldLease(await findLease(db, caller, leaseId), { runnerId: caller.subject.id, fence }, now);
}

/** Returns what the response asks the holder of a lease to do with its work. */
export function ordersOf(lease: Pick<StoredLease, "stop"> | undefined) {
  return { stop: lease?.stop === STOP, giveBack: lease?.stop === STOP_GIVE_BACK };
}
