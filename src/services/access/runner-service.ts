import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Runner } from "#gen/service/v1/runner_pb.js";
import type {
  CheckRepositoryAccessRequest,
  RunnerService as Contract,
  CreateRunnerRequest,
  CreateRunnerTokenRequest,
  DeleteRunnerRequest,
  GetRunnerRequest,
  ListRunnersRequest,
  ParseContextURLRequest,
  UpdateRunnerRequest,
} from "#gen/service/v1/runner_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import {
  newRunner,
  requireNoEnvironments,
  requireRunnerConnectable,
  requireRunnerDeletable,
  updatedRunner,
} from "../../domain/runner/runner.ts";
import { countEnvironmentsOfRunner } from "../../store/environment/environment.ts";
import { findRunner, insertRunner } from "../../store/runner/runner.ts";
import { findStoredRunner, updateRunner } from "../../store/runner/runner-life.ts";
import type { Scope, Store, WriteTransaction } from "../../store/store.ts";
import {
  callerOf,
  operationOf,
  PART_MS,
  requireOwnership,
  writeAsCaller,
  writePartAsCaller,
} from "../call/call.ts";
import { findReplay } from "../call/idempotency.ts";
import type { StreamDependencies } from "../call/stream-dependencies.ts";
import { replaceExchangeToken } from "../runner/exchange-token.ts";
import { listRunners } from "../runner/runner-list.ts";
import { checkRepositoryAccess, parseContextUrl } from "./remote-read.ts";
import { deleteEnvironmentsOfRunner, removeRunnerWithDependents } from "./runner-removal.ts";

/** Serves runners, which run an organization's environments. */
export class RunnerService implements ServiceImpl<typeof Contract> {
  readonly #deps: StreamDependencies;

  constructor(deps: StreamDependencies) {
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

  updateRunner(req: UpdateRunnerRequest, ctx: HandlerContext) {
    const change = async (tx: WriteTransaction, caller: Caller) => {
      const stored = await findStoredRunner(tx.db, caller, req.runnerId);
      if (!stored) throw notFound("runner");
      const runner = updatedRunner(stored.runner, req, tx.now);
      if (runner) await updateRunner(tx, caller, stored.runner, { ...stored, runner });
      return {};
    };
    // Exempt from the quota unless the name changes: pausing a runner adds only two bytes.
    return writeAsCaller(this.#deps.store, ctx, change, { isExempt: req.name === undefined || undefined });
  }

  createRunnerToken({ runnerId }: CreateRunnerTokenRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      requireRunnerConnectable(await getRunner(tx, caller, runnerId));
      return { exchangeToken: await replaceExchangeToken(tx, caller, keys, runnerId) };
    });
  }

  parseContextURL = (req: ParseContextURLRequest, ctx: HandlerContext) =>
    parseContextUrl(this.#deps, req, ctx);

  checkRepositoryAccess = (req: CheckRepositoryAccessRequest, ctx: HandlerContext) =>
    checkRepositoryAccess(this.#deps, req, ctx);

  async deleteRunner({ runnerId, force }: DeleteRunnerRequest, ctx: HandlerContext) {
    if (force) await deleteMostEnvironments(this.#deps.store, ctx, runnerId);
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const runner = await getRunner(tx, caller, runnerId);
      requireRunnerDeletable(runner);
      if (!force) requireNoEnvironments(await countEnvironmentsOfRunner(tx.db, caller, runnerId, 1));
      await removeRunnerWithDependents(tx, caller, runner);
      return {};
    });
  }
}

/** Maximum number of environments that are deleted in the transaction that removes their runner. */
const MAX_ENVIRONMENTS_AT_REMOVAL = 64;

/** Deletes the environments of a runner in separate transactions, until few are left. */
async function deleteMostEnvironments(store: Store, ctx: HandlerContext, runnerId: string): Promise<void> {
  let isDone = false;
  while (!isDone) {
    isDone = await writePartAsCaller(store, ctx, async (tx, caller) => {
      // Another request with this idempotency key has succeeded: its response is replayed later.
      if (await findReplay(tx, ctx, caller, operationOf(ctx))) return true;
      requireRunnerDeletable(await getRunner(tx, caller, runnerId));
      const limit = MAX_ENVIRONMENTS_AT_REMOVAL + 1;
      if ((await countEnvironmentsOfRunner(tx.db, caller, runnerId, limit)) < limit) return true;
      return deleteEnvironmentsOfRunner(tx, caller, runnerId, PART_MS);
    });
  }
}

async function getRunner(tx: WriteTransaction, scope: Scope, runnerId: string): Promise<Runner> {
  const runner = await findRunner(tx.db, scope, runnerId);
  if (!runner) throw notFound("runner");
  return runner;
}
