import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Principal } from "#gen/service/v1/identity_pb.js";
import {
  type RunnerConfigurationService as Contract,
  type CreateEnvironmentClassRequest,
  type CreateHostAuthenticationTokenRequest,
  type DeleteHostAuthenticationTokenRequest,
  type GetEnvironmentClassRequest,
  type GetHostAuthenticationTokenRequest,
  type ListEnvironmentClassesRequest,
  ListEnvironmentClassesRequest_FilterSchema,
  type ListHostAuthenticationTokensRequest,
  type UpdateEnvironmentClassRequest,
  type UpdateHostAuthenticationTokenRequest,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { notFound } from "../../domain/error.ts";
import { requireAnnotationsKnown } from "../../domain/identity/annotation/annotations.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";
import {
  kindsAcceptingEnvironments,
  newEnvironmentClass,
  updatedEnvironmentClass,
} from "../../domain/runner/environment-class.ts";
import { ANNOTATIONS_LEVEL, mayStore } from "../../store/feature-level.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import {
  findEnvironmentClass,
  insertEnvironmentClass,
  updateEnvironmentClass,
} from "../../store/runner/environment-class.ts";
import {
  type EnvironmentClassFilter,
  findEnvironmentClassPage,
} from "../../store/runner/environment-class-list.ts";
import { findRunner } from "../../store/runner/runner.ts";
import { callerOf, grantOf, requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import {
  createHostAuthenticationToken,
  deleteHostAuthenticationToken,
  getHostAuthenticationToken,
  listHostAuthenticationTokens,
  updateHostAuthenticationToken,
} from "./host-token.ts";
import { runnersInScope } from "./runner-scope.ts";

/** Serves the configuration of runners: their environment classes and host tokens. */
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
      requireAnnotationsKnown(req, mayStore(tx, ANNOTATIONS_LEVEL));
      const environmentClass = newEnvironmentClass(req, runner, tx.newId());
      await insertEnvironmentClass(tx, caller, environmentClass);
      return { id: environmentClass.id };
    });
  }

  updateEnvironmentClass(req: UpdateEnvironmentClassRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await findEnvironmentClass(tx.db, caller, req.environmentClassId);
      if (!before) throw notFound("environment class");
      requireAnnotationsKnown(req, mayStore(tx, ANNOTATIONS_LEVEL));
      const after = updatedEnvironmentClass(before, req);
      if (after) await updateEnvironmentClass(tx, caller, before, after);
      return {};
    });
  }

  createHostAuthenticationToken = (req: CreateHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    createHostAuthenticationToken(this.#deps, req, ctx);

  getHostAuthenticationToken = ({ id }: GetHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    getHostAuthenticationToken(this.#deps, id, ctx);

  listHostAuthenticationTokens = (req: ListHostAuthenticationTokensRequest, ctx: HandlerContext) =>
    listHostAuthenticationTokens(this.#deps, req, ctx);

  updateHostAuthenticationToken = (req: UpdateHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    updateHostAuthenticationToken(this.#deps, req, ctx);

  deleteHostAuthenticationToken = ({ id }: DeleteHostAuthenticationTokenRequest, ctx: HandlerContext) =>
    deleteHostAuthenticationToken(this.#deps, id, ctx);
}

/** Returns one page of the environment classes of the caller's organization. A runner sees only its own. */
export async function listEnvironmentClasses(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListEnvironmentClassesRequest,
  grant: Grant,
) {
  const filter = await classFilter(deps, caller, req, grant);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListEnvironmentClasses",
    parts: [req.filter && toJson(ListEnvironmentClassesRequest_FilterSchema, req.filter)],
    pagination: req.pagination,
    find: (db, after, limit) => findEnvironmentClassPage(db, caller, filter, after, limit),
  });
  return { ...page, environmentClasses: rows };
}

async function classFilter(
  deps: ServiceDependencies,
  caller: Caller,
  { filter }: ListEnvironmentClassesRequest,
  grant: Grant,
): Promise<EnvironmentClassFilter> {
  const asked = filter?.canCreateEnvironments;
  const policies = asked === undefined ? undefined : await findPolicies(deps.store.reader, caller);
  return {
    runnerIds: runnersInScope(caller, grant, filter?.runnerIds ?? []),
    runnerKinds: filter?.runnerKinds ?? [],
    enabled: filter?.enabled,
    accepting: policies && {
      asked: asked === true,
      runnerKinds: kindsAcceptingEnvironments(policies, caller.role),
      local: policies.effective.allowLocalRunners ?? true,
    },
  };
}
