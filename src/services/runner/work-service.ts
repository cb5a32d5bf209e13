import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type WorkService as Contract,
  type FinishWorkRequest,
  FinishWorkResponseSchema,
  type GetHostCredentialRequest,
  type HeartbeatRequest,
  type LeaseWorkRequest,
  type RegisterRequest,
  type RenewLeaseRequest,
  RenewLeaseResponseSchema,
  type ReportProgressRequest,
  ReportProgressResponseSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { renewLease } from "../../store/runner/work-lease.ts";
import { getHostCredential } from "./host-credential.ts";
import { type LeaseDependencies, writeUnderLease } from "./lease.ts";
import { heartbeat, recordHeartbeat } from "./runner-life.ts";
import { registerRunner } from "./runner-registration.ts";
import type { FindHandler } from "./work-handler.ts";
import { leaseWork } from "./work-lease.ts";
import type { ReportUnusableWork } from "./work-set-aside.ts";

export interface WorkServiceDependencies extends LeaseDependencies {
  readonly handlerOf: FindHandler;
  /** Reports work whose assignment could not be made, for the log. */
  readonly onUnusableWork: ReportUnusableWork;
}

/** The work of runners: it is given out on lease, reported on and finished. */
export class WorkService implements ServiceImpl<typeof Contract> {
  readonly #deps: WorkServiceDependencies;

  constructor(deps: WorkServiceDependencies) {
    this.#deps = deps;
  }

  register = (req: RegisterRequest, ctx: HandlerContext) => registerRunner(this.#deps, req, ctx);

  heartbeat = (req: HeartbeatRequest, ctx: HandlerContext) => heartbeat(this.#deps, req, ctx);

  leaseWork = (req: LeaseWorkRequest, ctx: HandlerContext) => leaseWork(this.#deps, req, ctx);

  async renewLease(req: RenewLeaseRequest, ctx: HandlerContext) {
    await recordHeartbeat(this.#deps, ctx);
    return writeUnderLease(this.#deps, req, ctx, async (tx, _scope, lease) => {
      const expiresAt = tx.now + this.#deps.leaseMs;
      await renewLease(tx, lease.id, expiresAt);
      const stop = lease.stop === 1;
      return create(RenewLeaseResponseSchema, { expiresAt: timestampFromMs(expiresAt), stop });
    });
  }

  async reportProgress(req: ReportProgressRequest, ctx: HandlerContext) {
    await recordHeartbeat(this.#deps, ctx);
    return writeUnderLease(this.#deps, req, ctx, async (tx, scope, lease) => {
      const { stop } = await this.#deps.handlerOf(lease.kind).report(tx, scope, lease, req);
      const expiresAt = tx.now + this.#deps.leaseMs;
      await renewLease(tx, lease.id, expiresAt);
      return create(ReportProgressResponseSchema, {
        expiresAt: timestampFromMs(expiresAt),
        stop: stop || lease.stop === 1,
      });
    });
  }

  finishWork(outcome: FinishWorkRequest, ctx: HandlerContext) {
    return writeUnderLease(this.#deps, outcome, ctx, async (tx, scope, lease) => {
      await this.#deps.handlerOf(lease.kind).end(tx, scope, lease, { kind: "finished", outcome });
      return create(FinishWorkResponseSchema);
    });
  }

  getHostCredential = (req: GetHostCredentialRequest, ctx: HandlerContext) =>
    getHostCredential(this.#deps, req, ctx);
}
