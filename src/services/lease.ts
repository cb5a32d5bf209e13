import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../domain/caller.ts";
import { accountBlocked, leaseLost } from "../domain/error.ts";
import type { Scope, WriteTransaction } from "../store/store.ts";
import { findLease, type Lease } from "../store/work-lease.ts";
import { writeAsCaller } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";

/** How many times work is given out before it is given up (contract, Work.attempt). */
export const MOST_ATTEMPTS = 3;

/** How a runner names the lease that it holds. */
export interface LeaseName {
  readonly leaseId: string;
  readonly fence: bigint;
}

/**
 * Writes as the runner that holds a lease. Whether it does is found out in the
 * transaction itself, so that a late report changes nothing.
 *
 * @throws DomainError LEASE_LOST when the lease is not the runner's now;
 *   ACCOUNT_BLOCKED when the account that the work is done for is cut off
 */
export function writeUnderLease<T>(
  { store }: Pick<ServiceDependencies, "store">,
  name: LeaseName,
  ctx: HandlerContext,
  fn: (tx: WriteTransaction, scope: Scope, lease: Lease) => Promise<T>,
): Promise<T> {
  return writeAsCaller(store, ctx, async (tx, caller) => fn(tx, caller, await holdLease(tx, caller, name)));
}

async function holdLease(
  tx: WriteTransaction,
  caller: Caller,
  { leaseId, fence }: LeaseName,
): Promise<Lease> {
  const lease = await findLease(tx.db, leaseId);
  // A runner is of one organization, so that no other organization's lease names it.
  if (!lease || lease.leased_by !== caller.subject.id || BigInt(lease.fence) !== fence) throw leaseLost();
  if ((lease.expires_at ?? 0) <= tx.now) throw leaseLost();
  if (lease.blocked_at !== null) throw accountBlocked();
  return lease;
}
