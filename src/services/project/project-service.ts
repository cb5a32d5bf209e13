import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import {
  type ProjectService as Contract,
  type CreateProjectFromEnvironmentRequest,
  type CreateProjectRequest,
  CreateProjectRequestSchema,
  type CreateProjectsRequest,
  type CreateProjectsResponse,
  type DeleteProjectRequest,
  type GetProjectRequest,
  type ListProjectEnvironmentClassesRequest,
  type ListProjectsRequest,
  type UpdateProjectEnvironmentClassesRequest,
  type UpdateProjectRequest,
  UpdateProjectRequestSchema,
  type UpdateProjectsRequest,
  type UpdateProjectsResponse,
} from "#gen/service/v1/project_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import type { Policies } from "../../domain/policy/policies.ts";
import { becomesSourceSetter, requireMayPrebuildAs } from "../../domain/project/prebuild-executor.ts";
import {
  deletedProject,
  newProject,
  type ProjectTemplate,
  templateFromEnvironment,
  updatedProject,
  withEnvironmentClasses,
} from "../../domain/project/project.ts";
import { requireEditorsAllowed, requireProjectCreationAllowed } from "../../domain/project/project-policy.ts";
import {
  findSourceSetters,
  insertSourceSetters,
  replaceSourceSetters,
} from "../../store/identity/source-setter.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findStoredProject, insertProject, updateProject } from "../../store/project/project.ts";
import type { Reader, Scope, WriteTransaction } from "../../store/store.ts";
import { callerOf, requireOwnership, writeAsCaller, writeReadAsCaller } from "../call/call.ts";
import { checkInSlices } from "../call/check-in-slices.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { longTextsKey } from "../call/short-reads.ts";
import { withinQuota } from "../call/storage-quota.ts";
import { writeEachAsCaller } from "../call/write-each.ts";
import { getChangeableProject } from "./changeable-project.ts";
import { releasePrebuilds } from "./prebuild-end.ts";
import { listProjectEnvironmentClasses, listProjects } from "./project-list.ts";
import { checkProjectReferences, isOnLocalRunner, requireNoLocalClasses } from "./project-references.ts";

/** The dependencies of the project service, including functions that later areas provide. */
export interface ProjectServiceDependencies extends ServiceDependencies {
  readonly findEnvironment: (db: Reader, scope: Scope, id: string) => Promise<Environment | undefined>;
}

/** Serves projects, from which environments are created. */
export class ProjectService implements ServiceImpl<typeof Contract> {
  readonly #deps: ProjectServiceDependencies;

  constructor(deps: ProjectServiceDependencies) {
    this.#deps = deps;
  }

  listProjects = (req: ListProjectsRequest, ctx: HandlerContext) => listProjects(this.#deps, ctx, req);

  listProjectEnvironmentClasses = (req: ListProjectEnvironmentClassesRequest, ctx: HandlerContext) =>
    listProjectEnvironmentClasses(this.#deps, callerOf(ctx), req);

  async getProject({ projectId }: GetProjectRequest, ctx: HandlerContext) {
    const db = this.#deps.store.reader;
    const caller = callerOf(ctx);
    const project = await findStoredProject(db, caller, projectId, ctx.values.get(longTextsKey));
    if (!project) throw notFound("project");
    if (!(await this.#isProjectOfEnvironment(caller, projectId))) requireOwnership(ctx);
    return { project };
  }

  createProject(req: CreateProjectRequest, ctx: HandlerContext) {
    return writeReadAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const policies = await findPolicies(tx.db, caller);
      return async () => ({ project: await createProject(tx, caller, policies, req) });
    });
  }

  createProjectFromEnvironment(req: CreateProjectFromEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const environment = await this.#deps.findEnvironment(tx.db, caller, req.environmentId);
      if (!environment) throw notFound("environment");
      const { name, annotations } = req;
      const isLocal = await isOnLocalRunner(tx.db, caller, environment);
      const template = { ...templateFromEnvironment(environment, isLocal), annotations };
      // A copied source keeps its setters: the subjects who chose it for the environment.
      const setters = await findSourceSetters(tx.db, caller, "environment", environment);
      const withName = name === undefined ? template : { ...template, name };
      return {
        project: await createProject(tx, caller, await findPolicies(tx.db, caller), withName, setters),
      };
    });
  }

  async createProjects({ projects }: CreateProjectsRequest, ctx: HandlerContext) {
    const requireChecked = await checkInSlices(projects, (each) =>
      this.#deps.check(CreateProjectRequestSchema, each),
    );
    return writeEachAsCaller(this.#deps.store, ctx, {
      elements: projects,
      async write(tx, caller, element) {
        requireChecked(element);
        const create = async () => createProject(tx, caller, await findPolicies(tx.db, caller), element);
        return tx.attempt(() => withinQuota(tx, caller, create));
      },
      respond: (createdProjects, failed) => ({
        createdProjects,
        failedProjects: failed.map(({ element, index, error }) => ({
          index,
          name: element.name ?? "",
          error,
        })),
      }),
      count: (response) => {
        const { createdProjects, failedProjects } = response as CreateProjectsResponse;
        return createdProjects.length + failedProjects.length;
      },
    });
  }

  updateProject(req: UpdateProjectRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => ({
      project: await changeProject(tx, ctx, caller, req),
    }));
  }

  async updateProjects({ projects }: UpdateProjectsRequest, ctx: HandlerContext) {
    const requireChecked = await checkInSlices(projects, (each) =>
      this.#deps.check(UpdateProjectRequestSchema, each),
    );
    return writeEachAsCaller(this.#deps.store, ctx, {
      elements: projects,
      async write(tx, caller, element) {
        requireChecked(element);
        return tx.attempt(() => withinQuota(tx, caller, () => changeProject(tx, ctx, caller, element)));
      },
      respond: (updatedProjects, failed) => ({
        updatedProjects,
        failedProjects: failed.map(({ element: { projectId }, index, error }) => ({
          index,
          projectId,
          error,
        })),
      }),
      count: (response) => {
        const { updatedProjects, failedProjects } = response as UpdateProjectsResponse;
        return updatedProjects.length + failedProjects.length;
      },
    });
  }

  updateProjectEnvironmentClasses(req: UpdateProjectEnvironmentClassesRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getChangeableProject(tx, ctx, caller, req.projectId);
      const after = withEnvironmentClasses(before, req.projectEnvironmentClasses, tx.now);
      await checkProjectReferences(tx.db, caller, after);
      await requireNoLocalClasses(tx.db, caller, after);
      if (after !== before) await updateProject(tx, caller, before, after);
      return {};
    });
  }

  deleteProject({ projectId }: DeleteProjectRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await getChangeableProject(tx, ctx, caller, projectId);
      const after = deletedProject(before, tx.now);
      if (!after) return {};
      await updateProject(tx, caller, before, after);
      await releasePrebuilds(tx, caller, projectId);
      return {};
    });
  }

  /** Returns whether the caller is an environment that was created from the project. */
  async #isProjectOfEnvironment(caller: Caller, projectId: string): Promise<boolean> {
    if (caller.role !== "environment") return false;
    const { store, findEnvironment } = this.#deps;
    const environment = await findEnvironment(store.reader, caller, caller.subject.id);
    return environment?.metadata?.projectId === projectId;
  }
}

async function createProject(
  tx: WriteTransaction,
  caller: Caller,
  policies: Policies,
  template: ProjectTemplate,
  sourceSetBy: readonly Subject[] = [caller.subject],
): Promise<Project> {
  requireProjectCreationAllowed(policies, caller.role);
  const project = newProject(template, {
    id: tx.newId(),
    organizationId: caller.organizationId,
    creator: caller.subject,
    now: tx.now,
  });
  await checkProjectReferences(tx.db, caller, project);
  requireMayPrebuildAs(undefined, project, caller);
  const stored = await insertProject(tx, caller, project);
  await insertSourceSetters(tx, caller, "project", project, sourceSetBy);
  return stored;
}

async function changeProject(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  req: UpdateProjectRequest,
): Promise<Project> {
  const before = await getChangeableProject(tx, ctx, caller, req.projectId);
  const after = updatedProject(before, req, tx.now);
  if (req.prebuildConfiguration) await checkProjectReferences(tx.db, caller, after);
  requireMayPrebuildAs(before, after, caller);
  if (req.recommendedEditors)
    requireEditorsAllowed(await findPolicies(tx.db, caller), req.recommendedEditors);
  const setBy = becomesSourceSetter(before, req, caller)
    ? await replaceSourceSetters(tx, caller, "project", after, [caller.subject])
    : undefined;
  return after === before && !setBy ? before : updateProject(tx, caller, before, after, setBy);
}
