import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  type FinishWorkRequest,
  FinishWorkResponseSchema,
  type LeaseRenewalSchema,
  type RenewLeasesRequest,
  RenewLeasesResponseSchema,
  type ReportProgressRequest,
  ReportProgressResponseSchema,
  type ReportWorksRequest,
  ReportWorksResponseSchema,
  type WorkReport,
  type WorkReportResultSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { DomainError } from "../../domain/error.ts";
import { requireReported } from "../../domain/runner/lease.ts";
import { renewLease, type StoredLease } from "../../store/runner/work-lease.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import { recordHeartbeat } from "./heartbeat.ts";
import { type LeaseDependencies, type LeaseReference, ordersOf, requireLease } from "./held-lease.ts";
import { claimAs, findClaimant } from "./wait-for-work.ts";
import type { FindHandler } from "./work-handler.ts";
import type { WorkServiceDependencies } from "./work-service.ts";
import { type Part, type PartResult, workErrorOf, writeParts } from "./write-parts.ts";

/** The dependencies of reports. */
export interface ReportDependencies extends LeaseDependencies {
  readonly handlerOf: FindHandler;
}

/**
 * Applies a report on leased work and renews the lease.
 *
 * @param finish ends the lease in the same write, which then needs no renewal
 */
export async function applyReport(
  { handlerOf, leaseMs }: ReportDependencies,
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredLease,
  req: ReportProgressRequest,
  finish?: FinishWorkRequest,
) {
  // A delayed transition happened after the last renewal, since the runner was alive to make that.
  const since = Math.min(tx.now, (lease.expires_at ?? tx.now) - leaseMs);
  const { stop, reported } = await handlerOf(lease.kind).report(tx, scope, lease, {
    ...req,
    since,
    endsAs: finish?.outcome,
  });
  const expiresAt = tx.now + leaseMs;
  if (!finish) await renewLease(tx, lease.id, expiresAt);
  const response = create(ReportProgressResponseSchema, {
    expiresAt: timestampFromMs(expiresAt),
    stop: stop || lease.stop === 1,
  });
  return { response, reported };
}

/** Ends leased work. @param reported the result of a report in the same transaction, if there was one */
export async function applyEnd(
  { handlerOf }: ReportDependencies,
  tx: WriteTransaction,
  scope: Scope,
  lease: StoredLease,
  outcome: FinishWorkRequest,
  reported?: unknown,
) {
  await handlerOf(lease.kind).end(tx, scope, lease, { kind: "finished", outcome }, reported);
  return create(FinishWorkResponseSchema);
}

type Applied = NonNullable<MessageInitShape<typeof WorkReportResultSchema>["result"]>;

/** Applies reports and ends of several leases independently, and then leases new work without waiting. */
export async function reportWorks(
  deps: WorkServiceDependencies,
  { reports, lease }: ReportWorksRequest,
  ctx: HandlerContext,
) {
  await recordHeartbeat(deps, ctx);
  const parts: Part<Applied | Work[]>[] = reports.map((report) => toPart(deps, report));
  if (lease && !deps.draining.aborted) {
    parts.push(async (tx, caller) => {
      const claimant = await findClaimant(tx.db, caller, lease);
      return async () => (await claimAs(deps, tx, caller, claimant, lease)).works;
    });
  }
  return writeParts(deps, ctx, parts, (results) => {
    const claimed = results[reports.length];
    return create(ReportWorksResponseSchema, {
      results: results
        .slice(0, reports.length)
        .map((each) => ({ result: toResult(each as PartResult<Applied>) })),
      works: claimed && "value" in claimed ? (claimed.value as Work[]) : [],
    });
  });
}

function toPart(deps: ReportDependencies, { progress, finish }: WorkReport): Part<Applied> {
  return async (tx, caller) => {
    const lease = await requireLease(tx.db, caller, requireReported(progress ?? finish), tx.now);
    return async () => {
      const applied = progress && (await applyReport(deps, tx, caller, lease, progress, finish));
      if (!finish) return { case: "progress", value: applied?.response ?? {} };
      const value = await applyEnd(deps, tx, caller, lease, finish, applied?.reported);
      return { case: "finish", value };
    };
  };
}

function toResult(result: PartResult<Applied>): Applied {
  return "value" in result ? result.value : { case: "error", value: result.error };
}

type Renewal = MessageInitShape<typeof LeaseRenewalSchema>;

/** Renews several leases; a lost one fails alone. */
export async function renewLeases(
  deps: LeaseDependencies,
  { leases }: RenewLeasesRequest,
  ctx: HandlerContext,
) {
  await recordHeartbeat(deps, ctx);
  return writeAsCaller(deps.store, ctx, async (tx, caller) => {
    const expiresAt = tx.now + deps.leaseMs;
    const renewals: Renewal[] = [];
    for (const reference of leases) renewals.push(await renew(tx, caller, reference, expiresAt));
    return create(RenewLeasesResponseSchema, { renewals });
  });
}

async function renew(
  tx: WriteTransaction,
  caller: Parameters<typeof requireLease>[1],
  reference: LeaseReference,
  expiresAt: number,
): Promise<Renewal> {
  try {
    const lease = await requireLease(tx.db, caller, reference, tx.now);
    await renewLease(tx, lease.id, expiresAt);
    return {
      result: {
        case: "renewed",
        value: { expiresAt: timestampFromMs(expiresAt), ...ordersOf(lease) },
      },
    };
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return { result: { case: "error", value: workErrorOf(error) } };
  }
}
