import { addToPopularity } from "../domain/project/popularity.ts";
import { findProjectsToCount, findUncountedEnvironments } from "../store/project/popularity.ts";
import type { BookkeepingUpdate, Store } from "../store/store.ts";
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
    const projectIds = await findProjectsToCount(store.reader, PROJECTS_PER_BATCH);
    if (projectIds.length === 0) return counted;
    for (const projectId of projectIds) counted += await countProject(store, projectId);
  }
}

async function countProject(store: Store, projectId: string): Promise<number> {
  let counted = 0;
  await store.touchAll(async (db): Promise<readonly BookkeepingUpdate[]> => {
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
  });
  return counted;
}

/** Refreshes the popularity of projects. */
export const popularityJob: JobFactory = ({ store, settings }) => ({
  name: "popularity",
  everyMs: settings.popularityInterval * 1000,
  run: () => refreshPopularity(store),
});
