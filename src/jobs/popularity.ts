import { addToPopularity } from "../domain/project/popularity.ts";
import { findProjectsToCount, findUncountedEnvironments } from "../store/project/popularity.ts";
import { type BookkeepingUpdate, type Reader, type Scope, type Store, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Number of projects read at a time. */
const PROJECTS_PER_BATCH = 1_000;

/** Number of environments counted at a time. It bounds memory and the length of one transaction. */
const ENVIRONMENTS_PER_BATCH = 1_000;

/**
 * Adds the environments created since the last run to their projects'
 * popularity. Projects without new environments do not change, since time alone
 * does not change the order. The score and the counted environments are read and
 * written in one transaction: an interrupted run counts nothing twice, and a
 * concurrent removal, which counts too, loses nothing.
 *
 * @returns the number of environments counted
 */
export async function refreshPopularity(store: Store): Promise<number> {
  let counted = 0;
  for (;;) {
    const projects = await findProjectsToCount(store.reader, PROJECTS_PER_BATCH);
    if (projects.length === 0) return counted;
    for (const { projectId, organizationId } of projects)
      counted += await countProject(store, { organizationId }, projectId);
  }
}

async function countProject(store: Store, scope: Scope, projectId: string): Promise<number> {
  let counted = 0;
  const count = async (db: Reader): Promise<readonly BookkeepingUpdate[]> => {
    const { popularity, environments } = await findUncountedEnvironments(
      db,
      projectId,
      ENVIRONMENTS_PER_BATCH,
    );
    counted = environments.length;
    if (counted === 0) return [];
    const score = addToPopularity(
      popularity,
      environments.map(({ createdAt }) => createdAt),
    );
    return [
      { table: "project", id: projectId, values: { popularity: score } },
      ...environments.map(({ id }) => ({ table: "environment", id, values: { counted: 1 } }) as const),
    ];
  };
  await store.touchAll(count, within(scope));
  return counted;
}

/** Refreshes the popularity of projects. */
export const popularityJob: JobFactory = ({ store, settings }) => ({
  name: "popularity",
  everyMs: settings.popularityInterval * 1000,
  run: () => refreshPopularity(store),
});
