import { ProjectPhase } from "#gen/service/v1/project_pb.js";
import { builderOf } from "../query-builder.ts";
import type { Reader } from "../store.ts";

/**
 * Returns up to `limit` projects marked for removal that no environment refers to, without any
 * prebuild left. For the system, so without a scope.
 * @param organizationId of the projects; default any
 */
export async function findRemovableProjects(
  db: Reader,
  limit: number,
  organizationId?: string,
): Promise<{ id: string; organizationId: string }[]> {
  return builderOf(db)
    .selectFrom("project")
    .select(["project.id", "project.organization_id as organizationId"])
    .where("project.desired_phase", "=", ProjectPhase.DELETED)
    .$if(organizationId !== undefined, (projects) =>
      projects.where("project.organization_id", "=", organizationId as string),
    )
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom("environment")
            .select("environment.id")
            .whereRef("environment.project_id", "=", "project.id"),
        ),
      ),
    )
    .where((eb) =>
      eb.not(
        eb.exists(
          eb.selectFrom("prebuild").select("prebuild.id").whereRef("prebuild.project_id", "=", "project.id"),
        ),
      ),
    )
    .orderBy("project.id")
    .limit(limit)
    .execute();
}
