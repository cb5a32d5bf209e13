import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type BeginInstanceRequest,
  BeginInstanceResponseSchema,
  type WorkService as Contract,
  type FinishWorkRequest,
  type GetHostCredentialRequest,
  GetHostCredentialResponseSchema,
  type HeartbeatRequest,
  type LeaseWorkRequest,
  type RegisterRequest,
  type RenewLeaseRequest,
  RenewLeaseResponseSchema,
  type RenewLeasesRequest,
  type ReportProgressRequest,
  type ReportWorksRequest,
} from "#gen/runner/v1/work_service_pb.js";
import { notFound, unauthenticated } from "../../domain/error.ts";
import { requireHostOfWork } from "../../domain/runner/lease.ts";
import { requireNoOtherInstance } from "../../domain/runner/runner-heartbeat.ts";
import { beginRunnerInstance, findStoredRunner } from "../../store/runner/runner-life.ts";
import { expireLeases, renewLease } from "../../store/runner/work-lease.ts";
import { callerOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { getExecutorAsCaller } from "../identity/executor.ts";
import { requireTrustedSource } from "../identity/source-trust.ts";
import { heartbeat, recordHeartbeat } from "./heartbeat.ts";
import { ordersOf, writeUnderLease } from "./held-lease.ts";
import { readHostCredential } from "./host-token-secret.ts";
import { applyEnd, applyReport, type ReportDependencies, renewLeases, reportWorks } from "./report-works.ts";
import { registerRunner } from "./runner-registration.ts";
import type { ReportUnusableWork } from "./unusable-work.ts";
import { leaseWork } from "./wait-for-work.ts";
import type { FindHandler } from "./work-handler.ts";

/** The dependencies of the work service. */
export interface WorkServiceDependencies extends ReportDependencies {
  /** Logs work whose assignment failed. */
  readonly onUnusableWork: ReportUnusableWork;
}

/** Serves runners, which lease work, report on it and finish it. */
export class WorkService implements ServiceImpl<typeof Contract> {
  readonly #deps: WorkServiceDependencies;

  constructor(deps: WorkServiceDependencies) {
    this.#deps = deps;
  }

  register = (req: RegisterRequest, ctx: HandlerContext) => registerRunner(this.#deps, req, ctx);

  heartbeat = (req: HeartbeatRequest, ctx: HandlerContext) => heartbeat(this.#deps, req, ctx);

  beginInstance = (req: BeginInstanceRequest, ctx: HandlerContext) => beginInstance(this.#deps, req, ctx);

  leaseWork = (req: LeaseWorkRequest, ctx: HandlerContext) => leaseWork(this.#deps, req, ctx);

  async renewLease(req: RenewLeaseRequest, ctx: HandlerContext) {
    await recordHeartbeat(this.#deps, ctx);
    return writeUnderLease(this.#deps, req, ctx, async (tx, _scope, lease) => {
      const expiresAt = tx.now + this.#deps.leaseMs;
      await renewLease(tx, lease.id, expiresAt);
      return create(RenewLeaseResponseSchema, { expiresAt: timestampFromMs(expiresAt), ...ordersOf(lease) });
    });
  }

  async reportProgress(req: ReportProgressRequest, ctx: HandlerContext) {
    await recordHeartbeat(this.#deps, ctx);
    return writeUnderLease(
      this.#deps,
      req,
      ctx,
      async (tx, scope, lease) => (await applyReport(this.#deps, tx, scope, lease, req)).response,
    );
  }

  finishWork(outcome: FinishWorkRequest, ctx: HandlerContext) {
    return writeUnderLease(this.#deps, outcome, ctx, (tx, scope, lease) =>
      applyEnd(this.#deps, tx, scope, lease, outcome),
    );
  }

  reportWorks = (req: ReportWorksRequest, ctx: HandlerContext) => reportWorks(this.#deps, req, ctx);

  renewLeases = (req: RenewLeasesRequest, ctx: HandlerContext) => renewLeases(this.#deps, req, ctx);

  getHostCredential = (req: GetHostCredentialRequest, ctx: HandlerContext) =>
    getHostCredential(this.#deps, req, ctx);
}

/**
 * Returns the credential that the executor of leased work has for a host on the runner. The work must start from a
 * repository at this host, the executor must be able to act, and a subject that may use the executor's credential
 * must have set the source. The audit log records each read.
 *
 * @throws DomainError VALUE_UNUSABLE for another host, EXECUTOR_UNFIT, CREDENTIAL_WITHHELD, NOT_FOUND without such a
 * credential
 */
export function getHostCredential(
  deps: Pick<ServiceDependencies, "store" | "keys"> & { readonly handlerOf: FindHandler },
  req: GetHostCredentialRequest,
  ctx: HandlerContext,
) {
  return writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    const host = req.host.toLowerCase();
    const use = await deps.handlerOf(lease.kind).credentialUse(tx, scope, lease);
    const { subject, addresses, sourceSetBy: setters, sourceKinds: kinds, namedBy } = use;
    requireHostOfWork(host, addresses);
    await getExecutorAsCaller(tx, scope, subject);
    await requireTrustedSource(tx, scope, { host, executor: subject, namedBy, setters, kinds });
    const runnerId = callerOf(ctx).subject.id;
    const opened = await readHostCredential(tx, scope, deps.keys, { runnerId, host, subject });
    if (!opened) throw notFound("host authentication token");
    const { token, secrets } = opened;
    return create(GetHostCredentialResponseSchema, {
      token: secrets.token,
      source: token.source,
      ...(token.expiresAt && { expiresAt: token.expiresAt }),
      hostAuthenticationTokenId: token.id,
    });
  });
}

/**
 * Begins an instance of a runner. The leases that it held before expire now: the job for expired leases returns their
 * work to the queue within a second.
 */
function beginInstance(
  { store }: Pick<ServiceDependencies, "store">,
  { instanceId }: BeginInstanceRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const runnerId = caller.subject.id;
    const known = await findStoredRunner(tx.db, caller, runnerId);
    // The runner was deleted in the meantime, together with its token.
    if (!known) throw unauthenticated();
    requireNoOtherInstance(known, instanceId, tx.now);
    await beginRunnerInstance(tx, caller, runnerId, instanceId);
    const lostLeases = await expireLeases(tx, caller, runnerId, instanceId);
    return create(BeginInstanceResponseSchema, { lostLeases });
  });
}
