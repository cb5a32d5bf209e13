import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ListProjectEnvironmentClassesRequest,
  type ListProjectsRequest,
  ListProjectsRequest_FilterSchema,
} from "#gen/service/v1/project_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { projectOrder } from "../../domain/project/project-order.ts";
import { fold } from "../../domain/text/fold.ts";
import { findProject } from "../../store/project/project.ts";
import type { ProjectFilter } from "../../store/project/project-filter.ts";
import { findProjectPage } from "../../store/project/project-list.ts";
import { callerOf } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { longTextsKey } from "../call/short-reads.ts";

/** Returns one page of the caller's projects, and on the first page their count if requested. */
export async function listProjects(deps: ServiceDependencies, ctx: HandlerContext, req: ListProjectsRequest) {
  const caller = callerOf(ctx);
  const filter = projectFilter(req);
  const order = projectOrder(req.sort);
  const isCounted = req.count?.include ?? false;
  let counted = 0;
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListProjects",
    parts: [
      req.filter && toJson(ListProjectsRequest_FilterSchema, req.filter),
      [order.field, order.direction],
    ],
    pagination: req.pagination,
    find: async (_, after, limit) => {
      const countLimit = isCounted && !after ? deps.countLimit + 1 : undefined;
      const query = { filter, order, after, limit, countLimit };
      const { projects, count = 0 } = await findProjectPage(deps.store, caller, query, () => ctx.signal);
      counted = count;
      return projects;
    },
    beforeLongTexts: ctx.values.get(longTextsKey),
    // The same search found it together with the page.
    count: isCounted ? async () => counted : undefined,
  });
  return { ...page, projects: rows };
}

/** An upper bound of the bytes of an entry in JSON: an id, an order or a flag, and their names. */
const PROJECT_CLASS_BYTES = 256;

/** Returns one page of a project's environment classes, in their order. */
export async function listProjectEnvironmentClasses(
  deps: ServiceDependencies,
  caller: Caller,
  req: ListProjectEnvironmentClassesRequest,
) {
  const project = await findProject(deps.store.reader, caller, req.projectId);
  if (!project) throw notFound("project");
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListProjectEnvironmentClasses",
    parts: [project.id],
    pagination: req.pagination,
    find: async (_, after) =>
      project.environmentClasses
        .map((entry, index) => ({
          position: { key: index, id: project.id },
          bytes: PROJECT_CLASS_BYTES,
          read: () => entry,
        }))
        .slice(after ? after.key + 1 : 0),
  });
  return { ...page, projectEnvironmentClasses: rows };
}

function projectFilter({ filter }: ListProjectsRequest): ProjectFilter {
  return {
    projectIds: filter?.projectIds ?? [],
    search: fold(filter?.search ?? ""),
    runnerIds: filter?.runnerIds ?? [],
    runnerKinds: filter?.runnerKinds ?? [],
    remoteUris: filter?.specRemoteUris ?? [],
    creatorIds: filter?.creatorIds ?? [],
    annotations: filter?.annotations ?? {},
  };
}
