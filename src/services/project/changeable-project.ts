import type { HandlerContext } from "@connectrpc/connect";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { findWholeProject } from "../../store/project/project.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { requireOwnershipOrRole } from "../policy/shared-role.ts";

/**
 * Returns a project that the caller may change as its creator, as an administrator or through a group's role.
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED
 */
export async function getChangeableProject(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  projectId: string,
): Promise<Project> {
  const project = await findWholeProject(tx.db, caller, projectId);
  if (!project) throw notFound("project");
  const needed = { type: "project", id: project.id, role: ResourceRole.ADMIN } as const;
  await requireOwnershipOrRole(tx.db, ctx, caller, needed, project.metadata?.creator);
  return project;
}
