import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Runner } from "#gen/service/v1/runner_pb.js";
import type {
  RunnerService as Contract,
  CreateRunnerRequest,
  CreateRunnerTokenRequest,
  DeleteRunnerRequest,
  GetRunnerRequest,
  ListRunnersRequest,
} from "#gen/service/v1/runner_service_pb.js";
import { notFound } from "../../domain/error.ts";
import {
  newRunner,
  requireDeletable,
  requireExchangeable,
  requireNoEnvironments,
} from "../../domain/runner/runner.ts";
import { findEnvironmentsOfRunner } from "../../store/environment/environment.ts";
import { findRunner, insertRunner } from "../../store/runner/runner.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { callerOf, requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { replaceExchangeToken } from "../runner/exchange-token.ts";
import { listRunners } from "../runner/runner-list.ts";
import { removeRunnerWhole } from "./runner-removal.ts";

/** Runners: what runs an organization's environments. */
export class RunnerService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  listRunners = (req: ListRunnersRequest, ctx: HandlerContext) => listRunners(this.#deps, callerOf(ctx), req);

  async getRunner({ runnerId }: GetRunnerRequest, ctx: HandlerContext) {
    const runner = await findRunner(this.#deps.store.reader, callerOf(ctx), runnerId);
    if (!runner) throw notFound("runner");
    requireOwnership(ctx, { id: runnerId, principal: Principal.RUNNER });
    return { runner };
  }

  createRunner(req: CreateRunnerRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      const runner = newRunner(req, { id: tx.newId(), creator: caller.subject, now: tx.now });
      await insertRunner(tx, caller, runner);
      return { runner, exchangeToken: await replaceExchangeToken(tx, caller, keys, runner.runnerId) };
    });
  }

  createRunnerToken({ runnerId }: CreateRunnerTokenRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      requireExchangeable(await present(tx, caller, runnerId));
      return { exchangeToken: await replaceExchangeToken(tx, caller, keys, runnerId) };
    });
  }

  deleteRunner({ runnerId, force }: DeleteRunnerRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const runner = await present(tx, caller, runnerId);
      requireDeletable(runner);
      if (!force) requireNoEnvironments((await findEnvironmentsOfRunner(tx.db, caller, runnerId, 1)).length);
      await removeRunnerWhole(tx, caller, runner);
      return {};
    });
  }
}

async function present(tx: WriteTransaction, scope: Scope, runnerId: string): Promise<Runner> {
  const runner = await findRunner(tx.db, scope, runnerId);
  if (!runner) throw notFound("runner");
  return runner;
}
