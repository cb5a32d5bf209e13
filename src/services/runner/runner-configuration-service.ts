import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type {
  RunnerConfigurationService as Contract,
  CreateEnvironmentClassRequest,
  CreateHostAuthenticationTokenRequest,
  DeleteHostAuthenticationTokenRequest,
  GetEnvironmentClassRequest,
  GetHostAuthenticationTokenRequest,
  ListEnvironmentClassesRequest,
  ListHostAuthenticationTokensRequest,
  UpdateEnvironmentClassRequest,
  UpdateHostAuthenticationTokenRequest,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { newEnvironmentClass, updatedEnvironmentClass } from "../../domain/runner/environment-class.ts";
import {
  findEnvironmentClass,
  insertEnvironmentClass,
  updateEnvironmentClass,
} from "../../store/runner/environment-class.ts";
import { findRunner } from "../../store/runner/runner.ts";
import { callerOf, grantOf, requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listEnvironmentClasses } from "./environment-class-list.ts";
import {
  createHostToken,
  deleteHostToken,
  getHostAuthenticationToken,
  updateHostAuthenticationToken,
} from "./host-token.ts";
import { listHostAuthenticationTokens } from "./host-token-list.ts";

/** Runner configuration: the environment classes that runners offer, and the credentials that they use. */
export class RunnerConfigurationService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  listEnvironmentClasses = (req: ListEnvironmentClassesRequest, ctx: HandlerContext) =>
    listEnvironmentClasses(this.#deps, callerOf(ctx), req, grantOf(ctx));

  async getEnvironmentClass({ environmentClassId }: GetEnvironmentClassRequest, ctx: HandlerContext) {
    const environmentClass = await findEnvironmentClass(
      this.#deps.store.reader,
      callerOf(ctx),
      environmentClassId,
    );
    if (!environmentClass) throw notFound("environment class");
    requireOwnership(ctx, { id: environmentClass.runnerId, principal: Principal.RUNNER });
    return { environmentClass };
  }

  createEnvironmentClass(req: CreateEnvironmentClassRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const runner = await findRunner(tx.db, caller, req.runnerId);
      if (!runner) throw notFound("runner");
      const environmentClass = newEnvironmentClass(req, runner, tx.newId());
      await insertEnvironmentClass(tx, caller, environmentClass);
      return { id: environmentClass.id };
    });
  }

  updateEnvironmentClass(req: UpdateEnvironmentClassRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await findEnvironmentClass(tx.db, caller, req.environmentClassId);
      if (!before) throw notFound("environment class");
      const after = updatedEnvironmentClass(before, req);
      if (after) await updateEnvironmentClass(tx, caller, before, after);
      return {};
    });
  }

  createHostAuthenticationToken = (req: CreateHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    createHostToken(this.#deps, req, ctx);

  getHostAuthenticationToken = ({ id }: GetHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    getHostAuthenticationToken(this.#deps, id, ctx);

  listHostAuthenticationTokens = (req: ListHostAuthenticationTokensRequest, ctx: HandlerContext) =>
    listHostAuthenticationTokens(this.#deps, req, ctx);

  updateHostAuthenticationToken = (req: UpdateHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    updateHostAuthenticationToken(this.#deps, req, ctx);

  deleteHostAuthenticationToken = ({ id }: DeleteHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    deleteHostToken(this.#deps, id, ctx);
}
