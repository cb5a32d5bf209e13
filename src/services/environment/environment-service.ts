import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type {
  ArchiveEnvironmentRequest,
  EnvironmentService as Contract,
  CreateEnvironmentFromProjectRequest,
  CreateEnvironmentRequest,
  DeleteEnvironmentRequest,
  GetEnvironmentChangesRequest,
  GetEnvironmentDiffRequest,
  GetEnvironmentRequest,
  ListEnvironmentConnectionsRequest,
  ListEnvironmentFilesRequest,
  ListEnvironmentsRequest,
  OpenPullRequestRequest,
  PushEnvironmentBranchRequest,
  ReadEnvironmentFileRequest,
  StartEnvironmentRequest,
  StopEnvironmentRequest,
  UnarchiveEnvironmentRequest,
  UpdateEnvironmentRequest,
} from "#gen/service/v1/environment_service_pb.js";
import { ListEnvironmentsRequest_FilterSchema } from "#gen/service/v1/environment_service_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { ListEnvironmentClassesRequest } from "#gen/service/v1/runner_configuration_service_pb.js";
import {
  archivedEnvironment,
  deletedEnvironment,
  type EnvironmentTemplate,
  requireArchivable,
  requireNotOwnedByAction,
  startedEnvironment,
  stoppedEnvironment,
  unarchivedEnvironment,
  wasNeverAssigned,
} from "../../domain/environment/environment.ts";
import { requireOneBase } from "../../domain/environment/environment-changes.ts";
import { specFromProject, startsLocally } from "../../domain/environment/environment-from-project.ts";
import { environmentOrder } from "../../domain/environment/environment-order.ts";
import { requireTimeoutAllowed } from "../../domain/environment/environment-policy.ts";
import { updatedEnvironment } from "../../domain/environment/environment-update.ts";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Grant } from "../../domain/identity/permissions.ts";
import { fold } from "../../domain/text/fold.ts";
import { requireTimestampInRange, roundedUpMs } from "../../domain/timestamp-range.ts";
import {
  findEnvironment,
  findStoredEnvironment,
  insertEnvironment,
} from "../../store/environment/environment.ts";
import {
  countEnvironments,
  type EnvironmentFilter,
  findEnvironmentPage,
} from "../../store/environment/environment-list.ts";
import { insertSourceSetters } from "../../store/identity/source-setter.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findProject } from "../../store/project/project.ts";
import { insertProjectUse } from "../../store/project/project-use.ts";
import { findLocalRunnerId } from "../../store/runner/runner.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { callerOf, grantOf, requireOwnership, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { findSettersForSpec } from "../identity/source-trust.ts";
import { listEnvironmentClasses } from "../runner/runner-configuration-service.ts";
import { runnersInScope } from "../runner/runner-scope.ts";
import { getEnvironmentChanges, getEnvironmentDiff } from "./changes-read.ts";
import { listEnvironmentConnections } from "./connections.ts";
import { changeEnvironment, deleteEnvironmentRow } from "./environment-change.ts";
import { newEnvironmentUnderPolicies, requireStartAllowed } from "./environment-policy.ts";
import type { EnvironmentPushes } from "./environment-pushes.ts";
import { checkEnvironmentReferences } from "./environment-references.ts";
import type { EnvironmentWorkDependencies } from "./environment-work-service.ts";
import { getDiffToCommit, listEnvironmentFiles, readEnvironmentFile } from "./files-read.ts";

/** The dependencies of the service. */
interface EnvironmentDependencies extends EnvironmentWorkDependencies {
  readonly pushes: EnvironmentPushes;
}

/** Serves environments. It sets their desired phase; runners bring them to it. */
export class EnvironmentService implements ServiceImpl<typeof Contract> {
  readonly #deps: EnvironmentDependencies;

  constructor(deps: EnvironmentDependencies) {
    this.#deps = deps;
  }

  listEnvironments = (req: ListEnvironmentsRequest, ctx: HandlerContext) =>
    listEnvironments(this.#deps, callerOf(ctx), req, grantOf(ctx));

  async getEnvironment({ environmentId }: GetEnvironmentRequest, ctx: HandlerContext) {
    const found = await findStoredEnvironment(this.#deps.store.reader, callerOf(ctx), environmentId);
    if (!found) throw notFound("environment");
    requireOwnership(
      ctx,
      { id: environmentId, principal: Principal.ENVIRONMENT },
      { id: found.runnerId ?? "", principal: Principal.RUNNER },
    );
    return { environment: found.environment };
  }

  createEnvironment(req: CreateEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { spec, name = "", annotations, sessionId } = req;
      const template = { spec, name, annotations, sessionId, projectId: "", runnerId: "" };
      return { environment: await createEnvironment(tx, caller, template) };
    });
  }

  createEnvironmentFromProject(req: CreateEnvironmentFromProjectRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const project = await findProject(tx.db, caller, req.projectId);
      if (!project) throw notFound("project");
      const spec = specFromProject(project, req.spec);
      const { name = project.metadata?.name ?? "", annotations, sessionId } = req;
      const runnerId = startsLocally(project, spec) ? await findLocalRunnerId(tx.db, caller) : "";
      const template = { spec, name, annotations, sessionId, projectId: project.id, runnerId };
      const environment = await createEnvironment(tx, caller, template);
      const setters = await findSettersForSpec(tx, caller, project, req.spec);
      await insertSourceSetters(tx, caller, "environment", environment, setters);
      await insertProjectUse(tx, caller, project.id, caller.subject, environment.id);
      return { environment };
    });
  }

  startEnvironment({ environmentId }: StartEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnedEnvironment(tx, ctx, caller, environmentId);
      requireNotOwnedByAction(before);
      const after = startedEnvironment(before, tx.now);
      await requireStartAllowed(tx, caller, before, after);
      await changeEnvironment(tx, caller, before, after);
      return {};
    });
  }

  stopEnvironment({ environmentId }: StopEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnedEnvironment(tx, ctx, caller, environmentId);
      const after = stoppedEnvironment(before);
      if (after) await changeEnvironment(tx, caller, before, after);
      return {};
    });
  }

  deleteEnvironment({ environmentId, force }: DeleteEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnedEnvironment(tx, ctx, caller, environmentId);
      if (force || wasNeverAssigned(before)) {
        await deleteEnvironmentRow(tx, caller, before);
        return {};
      }
      const after = deletedEnvironment(before);
      if (after) await changeEnvironment(tx, caller, before, after);
      return {};
    });
  }

  updateEnvironment(req: UpdateEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnedEnvironment(tx, ctx, caller, req.environmentId);
      const after = updatedEnvironment(before, req);
      if (!after) return {};
      const disconnected = req.spec?.timeout?.disconnected;
      if (disconnected) requireTimeoutAllowed(await findPolicies(tx.db, caller), disconnected);
      await changeEnvironment(tx, caller, before, after);
      return {};
    });
  }

  archiveEnvironment({ environmentId }: ArchiveEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnedEnvironment(tx, ctx, caller, environmentId);
      requireArchivable(before);
      if (before.metadata?.archivedAt) return {};
      await changeEnvironment(tx, caller, before, archivedEnvironment(before, tx.now));
      return {};
    });
  }

  unarchiveEnvironment({ environmentId }: UnarchiveEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getOwnedEnvironment(tx, ctx, caller, environmentId);
      const after = unarchivedEnvironment(before);
      if (after) await changeEnvironment(tx, caller, before, after);
      return {};
    });
  }

  listEnvironmentClasses = (req: ListEnvironmentClassesRequest, ctx: HandlerContext) =>
    listEnvironmentClasses(this.#deps, callerOf(ctx), req, grantOf(ctx));

  getEnvironmentChanges = (req: GetEnvironmentChangesRequest, ctx: HandlerContext) =>
    getEnvironmentChanges(this.#deps, req, ctx);

  async getEnvironmentDiff(req: GetEnvironmentDiffRequest, ctx: HandlerContext) {
    requireOneBase(req);
    return req.commit === ""
      ? getEnvironmentDiff(this.#deps, req, ctx)
      : getDiffToCommit(this.#deps, req, ctx);
  }

  listEnvironmentConnections = (req: ListEnvironmentConnectionsRequest, ctx: HandlerContext) =>
    listEnvironmentConnections(this.#deps, req, ctx);

  listEnvironmentFiles = (req: ListEnvironmentFilesRequest, ctx: HandlerContext) =>
    listEnvironmentFiles(this.#deps, req, ctx);

  readEnvironmentFile = (req: ReadEnvironmentFileRequest, ctx: HandlerContext) =>
    readEnvironmentFile(this.#deps, req, ctx);

  pushEnvironmentBranch = (req: PushEnvironmentBranchRequest, ctx: HandlerContext) =>
    this.#deps.pushes.pushEnvironmentBranch(req, ctx);

  openPullRequest = (req: OpenPullRequestRequest, ctx: HandlerContext) =>
    this.#deps.pushes.openPullRequest(req, ctx);
}

async function createEnvironment(
  tx: WriteTransaction,
  caller: Caller,
  template: EnvironmentTemplate,
): Promise<Environment> {
  const environmentClass = await checkEnvironmentReferences(tx.db, caller, template.spec);
  const environment = await newEnvironmentUnderPolicies(tx, caller, {
    ...template,
    runnerId: environmentClass?.runnerId ?? template.runnerId,
  });
  await insertEnvironment(tx, caller, environment);
  return environment;
}

/** Returns an environment that the caller may change. */
async function getOwnedEnvironment(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  environmentId: string,
): Promise<Environment> {
  const environment = await findEnvironment(tx.db, caller, environmentId);
  if (!environment) throw notFound("environment");
  requireOwnership(ctx, environment.metadata?.creator);
  return environment;
}

/**
 * Returns one page of the caller's environments, and on the first page their count if requested. A runner gets only
 * its own environments.
 */
export async function listEnvironments(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListEnvironmentsRequest,
  grant: Grant,
) {
  requireTimestampInRange("filter.createdBefore", req.filter?.createdBefore);
  const asked = environmentFilter(req);
  const filter = { ...asked, runnerIds: runnersInScope(caller, grant, asked.runnerIds) };
  const order = environmentOrder(req.sort);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListEnvironments",
    parts: [
      req.filter && toJson(ListEnvironmentsRequest_FilterSchema, req.filter),
      [order.field, order.direction],
    ],
    pagination: req.pagination,
    search: filter.search,
    find: (db, after, limit) => findEnvironmentPage(db, caller, filter, order, after, limit),
    count: req.count?.include ? (db, limit) => countEnvironments(db, caller, filter, limit) : undefined,
  });
  return { ...page, environments: rows };
}

function environmentFilter({ filter }: ListEnvironmentsRequest): EnvironmentFilter {
  const before = filter?.createdBefore;
  return {
    runnerIds: filter?.runnerIds ?? [],
    phases: filter?.statusPhases ?? [],
    creatorIds: filter?.creatorIds ?? [],
    projectIds: filter?.projectIds ?? [],
    runnerKinds: filter?.runnerKinds ?? [],
    createdBefore: before && roundedUpMs(before),
    search: fold(filter?.search ?? ""),
    sessionIds: filter?.sessionIds ?? [],
    archived: filter?.archived,
  };
}
