import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Project } from "#gen/service/v1/project_pb.js";
import {
  type ProjectService as Contract,
  type CreateProjectFromEnvironmentRequest,
  type CreateProjectRequest,
  CreateProjectRequestSchema,
  type CreateProjectsRequest,
  type DeleteProjectRequest,
  type GetProjectRequest,
  type ListProjectEnvironmentClassesRequest,
  type ListProjectsRequest,
  type UpdateProjectEnvironmentClassesRequest,
  type UpdateProjectRequest,
  UpdateProjectRequestSchema,
  type UpdateProjectsRequest,
} from "#gen/service/v1/project_service_pb.js";
import type { Caller } from "../domain/caller.ts";
import { DomainError, notFound } from "../domain/error.ts";
import {
  deletedProject,
  newProject,
  type ProjectTemplate,
  templateFromEnvironment,
  updatedProject,
  withEnvironmentClasses,
} from "../domain/project.ts";
import { findEnvironment } from "../store/environment.ts";
import { findProject, findWholeProject, insertProject, updateProject } from "../store/project.ts";
import type { WriteTransaction } from "../store/store.ts";
import { callerOf, writeAsCaller } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";
import { answerProjectClasses, answerProjects } from "./project-list.ts";
import { checkProjectReferences, isOnLocalRunner, refuseLocalClasses } from "./project-references.ts";

/** Projects: how environments start. */
export class ProjectService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  listProjects = (req: ListProjectsRequest, ctx: HandlerContext) =>
    answerProjects(this.#deps, callerOf(ctx), req);

  listProjectEnvironmentClasses = (req: ListProjectEnvironmentClassesRequest, ctx: HandlerContext) =>
    answerProjectClasses(this.#deps, callerOf(ctx), req);

  async getProject({ projectId }: GetProjectRequest, ctx: HandlerContext) {
    const project = await findProject(this.#deps.store.reader, callerOf(ctx), projectId);
    if (!project) throw notFound("project");
    return { project };
  }

  createProject(req: CreateProjectRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => ({
      project: await create(tx, caller, req),
    }));
  }

  createProjectFromEnvironment(req: CreateProjectFromEnvironmentRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const environment = await findEnvironment(tx.db, caller, req.environmentId);
      if (!environment) throw notFound("environment");
      const { name, annotations } = req;
      const isLocal = await isOnLocalRunner(tx.db, caller, environment);
      const template = { ...templateFromEnvironment(environment, isLocal), annotations };
      return { project: await create(tx, caller, name === undefined ? template : { ...template, name }) };
    });
  }

  createProjects({ projects }: CreateProjectsRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { done, failed } = await eachOnItsOwn(projects, async (element) => {
        this.#deps.check(CreateProjectRequestSchema, element);
        return create(tx, caller, element);
      });
      const failedProjects = failed.map(({ element, index, error }) => ({
        index,
        name: element.name ?? "",
        error,
      }));
      return { createdProjects: done, failedProjects };
    });
  }

  updateProject(req: UpdateProjectRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => ({
      project: await update(tx, caller, req),
    }));
  }

  updateProjects({ projects }: UpdateProjectsRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { done, failed } = await eachOnItsOwn(projects, async (element) => {
        this.#deps.check(UpdateProjectRequestSchema, element);
        return update(tx, caller, element);
      });
      const failedProjects = failed.map(({ element: { projectId }, index, error }) => ({
        index,
        projectId,
        error,
      }));
      return { updatedProjects: done, failedProjects };
    });
  }

  updateProjectEnvironmentClasses(req: UpdateProjectEnvironmentClassesRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await present(tx, caller, req.projectId);
      const after = withEnvironmentClasses(before, req.projectEnvironmentClasses, tx.now);
      await checkProjectReferences(tx.db, caller, after);
      await refuseLocalClasses(tx.db, caller, after);
      await updateProject(tx, caller, before, after);
      return {};
    });
  }

  deleteProject({ projectId }: DeleteProjectRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await present(tx, caller, projectId);
      const after = deletedProject(before, tx.now);
      if (after) await updateProject(tx, caller, before, after);
      return {};
    });
  }
}

async function create(tx: WriteTransaction, caller: Caller, template: ProjectTemplate): Promise<Project> {
  const project = newProject(template, {
    id: tx.newId(),
    organizationId: caller.organizationId,
    creator: caller.subject,
    now: tx.now,
  });
  await checkProjectReferences(tx.db, caller, project);
  await insertProject(tx, caller, project);
  return project;
}

async function update(tx: WriteTransaction, caller: Caller, req: UpdateProjectRequest): Promise<Project> {
  const before = await present(tx, caller, req.projectId);
  const after = updatedProject(before, req, tx.now);
  if (req.prebuildConfiguration) await checkProjectReferences(tx.db, caller, after);
  await updateProject(tx, caller, before, after);
  return after;
}

async function present(tx: WriteTransaction, caller: Caller, projectId: string): Promise<Project> {
  const project = await findWholeProject(tx.db, caller, projectId);
  if (!project) throw notFound("project");
  return project;
}

/**
 * Does the elements of a batch in order. One that fails by a rule fails alone:
 * its checks come before its first row. Anything unexpected fails the batch.
 */
async function eachOnItsOwn<E, R>(elements: readonly E[], act: (element: E) => Promise<R>) {
  const done: R[] = [];
  const failed: { element: E; index: number; error: string }[] = [];
  for (const [index, element] of elements.entries()) {
    try {
      done.push(await act(element));
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      failed.push({ element, index, error: error.message });
    }
  }
  return { done, failed };
}
