import { WorkKind } from "#gen/runner/v1/work_pb.js";
import type { ReportProgressRequest } from "#gen/runner/v1/work_service_pb.js";
import { accountBlocked, leaseLost, phaseUnsuitable, valueUnusable } from "../error.ts";
import { isHostOf } from "../source/initializer-address.ts";

/**
 * The stored values that determine whether the runner of a lease may still act; times in milliseconds since 1970 UTC.
 */
export interface LeaseState {
  /** Id of the runner that holds it. */
  readonly leased_by: string | null;
  /** Number of the lease among the leases on the same work. */
  readonly fence: number;
  readonly expires_at: number | null;
  /** When the account of the work was blocked; null while it is not. */
  readonly blocked_at: number | null;
}

/**
 * Returns a lease, which the runner must hold.
 * @param lease undefined for one that does not exist
 * @throws DomainError LEASE_LOST for another runner's, an older or an expired lease; ACCOUNT_BLOCKED when the account
 * of the work is blocked
 */
export function requireHeldLease<L extends LeaseState>(
  lease: L | undefined,
  { runnerId, fence }: { readonly runnerId: string; readonly fence: bigint },
  now: number,
): L {
  if (!lease || lease.leased_by !== runnerId || BigInt(lease.fence) !== fence) throw leaseLost();
  if ((lease.expires_at ?? 0) <= now) throw leaseLost();
  if (lease.blocked_at !== null) throw accountBlocked();
  return lease;
}

/**
 * Requires that a lease is for a kind of work.
 * @param of name of the kind, for people
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireWorkKind(lease: { readonly kind: WorkKind }, kind: WorkKind, of: string): void {
  if (lease.kind === kind) return;
  throw phaseUnsuitable("lease", WorkKind[lease.kind] ?? "", `the lease is not on ${of}`);
}

/** Requires that one of several reports contains progress or an end. @throws DomainError VALUE_UNUSABLE */
export function requireReported<T>(report: T | undefined): T {
  if (report === undefined) throw valueUnusable("reports[]", "a report must have progress, an end, or both");
  return report;
}

/**
 * Requires that a report on work without steps contains no steps and no logs of steps. @throws DomainError
 * VALUE_UNUSABLE
 */
export function requireNoSteps({ steps, logs }: Pick<ReportProgressRequest, "steps" | "logs">): void {
  if (steps.length > 0) throw valueUnusable("steps", "only actions have steps");
  if (logs.length > 0) throw valueUnusable("logs", "only the steps of actions have logs");
}

/** Requires that work starts from a repository at a host. @throws DomainError VALUE_UNUSABLE */
export function requireHostOfWork(host: string, addresses: readonly string[]): void {
  if (!isHostOf(host, addresses))
    throw valueUnusable("host", "the work begins from no repository at this host");
}
