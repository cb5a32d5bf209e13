import { contains } from "../expressions.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** The beginning of a list of prebuild classes in a body, when the list is not empty. */
const PREBUILD_CLASSES = '"environmentClassIds":["';

/**
 * Returns the ids of the projects that name a runner's classes, to run on or to prebuild for;
 * `classIds` are those classes.
 */
export async function findProjectIdsOfRunner(
  db: Reader,
  scope: Scope,
  runnerId: string,
  classIds: readonly string[],
): Promise<string[]> {
  const running = await builderOf(db)
    .selectFrom("project_environment_class")
    .innerJoin("project", "project.id", "project_environment_class.project_id")
    .select("project.id")
    .where("project_environment_class.runner_id", "=", runnerId)
    .where("project.organization_id", "=", scope.organizationId)
    .execute();
  // Prebuild classes have no rows of their own: runners are deleted too rarely to maintain any.
  const prebuilding = await builderOf(db)
    .selectFrom("project")
    .select(["id", "body"])
    .where("organization_id", "=", scope.organizationId)
    .where(contains("project.body", PREBUILD_CLASSES))
    .execute();
  const naming = prebuilding.filter(({ body }) => classIds.some((id) => body.includes(id)));
  return [...new Set([...running, ...naming].map(({ id }) => id))].sort();
}
