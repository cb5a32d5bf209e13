import type { HandlerContext } from "@connectrpc/connect";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { accountBlocked, leaseLost, phaseUnsuitable } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findLease, type Lease } from "../../store/runner/work-lease.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";

/** How many times work is given out before it is given up (contract, Work.attempt). */
export const MAX_ATTEMPTS = 3;

/** What services of runners are built from. */
export interface LeaseDependencies extends StreamDependencies {
  /** How long a lease holds unless it is renewed. */
  readonly leaseMs: number;
}

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
  return writeAsCaller(store, ctx, async (tx, caller) =>
    fn(tx, caller, await requireLease(tx.db, caller, name, tx.now)),
  );
}

/**
 * The lease that a runner holds, for reads.
 *
 * @throws DomainError as {@link writeUnderLease}
 */
export async function requireLease(
  db: Reader,
  caller: Caller,
  { leaseId, fence }: LeaseName,
  now: number,
): Promise<Lease> {
  const lease = await findLease(db, leaseId);
  // A runner is of one organization, so that no other organization's lease names it.
  if (!lease || lease.leased_by !== caller.subject.id || BigInt(lease.fence) !== fence) throw leaseLost();
  if ((lease.expires_at ?? 0) <= now) throw leaseLost();
  if (lease.blocked_at !== null) throw accountBlocked();
  return lease;
}

/**
 * Refuses a lease on work of another kind than an operation is for.
 *
 * @param of what the operation is for, in words for people
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireWorkKind(lease: Lease, kind: WorkKind, of: string): void {
  if (lease.kind === kind) return;
  throw phaseUnsuitable("lease", WorkKind[lease.kind] ?? "", `the lease is not on ${of}`);
}
