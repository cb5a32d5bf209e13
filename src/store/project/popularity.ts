import { addToPopularity } from "../../domain/project/popularity.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/**
 * Returns up to `limit` projects that have uncounted environments. For the system, so without a
 * scope.
 */
export async function findProjectsToCount(
  db: Reader,
  limit: number,
): Promise<{ projectId: string; organizationId: string }[]> {
  const rows = await uncounted(db)
    .select(["environment.project_id as projectId", "environment.organization_id as organizationId"])
    .distinct()
    .orderBy("environment.project_id")
    .limit(limit)
    .execute();
  return rows.map(({ projectId, organizationId }) => ({ projectId: projectId ?? "", organizationId }));
}

/** Returns a project's current score, and up to `limit` of the environments that the score does not count yet. */
export async function findUncountedEnvironments(
  db: Reader,
  projectId: string,
  limit: number,
): Promise<{ popularity: number; environments: { id: string; createdAt: number }[] }> {
  const project = await builderOf(db)
    .selectFrom("project")
    .select("popularity")
    .where("id", "=", projectId)
    .executeTakeFirst();
  const environments = await uncounted(db)
    .select(["environment.id", "environment.created_at as createdAt"])
    .where("environment.project_id", "=", projectId)
    .orderBy("environment.created_at")
    .limit(limit)
    .execute();
  return { popularity: project?.popularity ?? 0, environments };
}

function uncounted(db: Reader) {
  return (
    builderOf(db)
      .selectFrom("environment")
      // A literal: a bound value would prevent the planner from using the partial index.
      .where("environment.counted", "=", (eb) => eb.lit(0))
      .where("environment.project_id", "is not", null)
  );
}

/** Counts an environment that is removed before the job has counted it, since it was a use all the same. */
export async function countRemovedEnvironment(
  db: Reader,
  scope: Scope,
  projectId: string,
  createdAt: number,
): Promise<void> {
  const { popularity } = await builderOf(db)
    .selectFrom("project")
    .select("popularity")
    .where("id", "=", projectId)
    .where("organization_id", "=", scope.organizationId)
    .executeTakeFirstOrThrow();
  await builderOf(db)
    .updateTable("project")
    .set({ popularity: addToPopularity(popularity, [createdAt]) })
    .where("id", "=", projectId)
    .where("organization_id", "=", scope.organizationId)
    .execute();
}
