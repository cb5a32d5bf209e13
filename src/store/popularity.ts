import type { Kysely } from "kysely";
import { addToPopularity } from "../domain/popularity.ts";
import type { Schema } from "./schema.ts";
import type { Scope } from "./store.ts";

/** An environment that its project's popularity does not count yet. */
export interface UncountedEnvironment {
  readonly id: string;
  /** Milliseconds since 1970 UTC. */
  readonly createdAt: number;
  readonly projectId: string;
  /** The project's present score. */
  readonly popularity: number;
}

/** Up to `limit` environments to count, those of one project together. For the system, so without a scope. */
export async function findUncountedEnvironments(
  db: Kysely<Schema>,
  limit: number,
): Promise<UncountedEnvironment[]> {
  return (
    db
      .selectFrom("environment")
      .innerJoin("project", "project.id", "environment.project_id")
      .select([
        "environment.id",
        "environment.created_at as createdAt",
        "project.id as projectId",
        "project.popularity",
      ])
      // A literal: a bound value would keep the planner from the partial index.
      .where("environment.counted", "=", (eb) => eb.lit(0))
      .orderBy("environment.project_id")
      .orderBy("environment.created_at")
      .limit(limit)
      .execute()
  );
}

/** Counts an environment that is removed before the job came to it: it was a use all the same. */
export async function countRemovedEnvironment(
  db: Kysely<Schema>,
  scope: Scope,
  projectId: string,
  createdAt: number,
): Promise<void> {
  const { popularity } = await db
    .selectFrom("project")
    .select("popularity")
    .where("id", "=", projectId)
    .where("organization_id", "=", scope.organizationId)
    .executeTakeFirstOrThrow();
  await db
    .updateTable("project")
    .set({ popularity: addToPopularity(popularity, [createdAt]) })
    .where("id", "=", projectId)
    .where("organization_id", "=", scope.organizationId)
    .execute();
}
