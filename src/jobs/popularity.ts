import { addToPopularity } from "../domain/project/popularity.ts";
import { findProjectsToCount, findUncountedEnvironments } from "../store/project/popularity.ts";
import type { BookkeepingUpdate, Store } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** Projects looked up at a time. */
const PROJECTS_A_BATCH = 1_000;

/** Environments counted at a time; it bounds memory and the length of one transaction. */
const ENVIRONMENTS_A_BATCH = 1_000;

/**
 * Adds the environments created since the last run to their projects'
 * popularity. Projects without new ones are not touched: time alone changes no
 * order. A score and what it counts are read and written in one transaction, so
 * that a run cut short counts nothing twice, and a removal meanwhile, which
 * counts too, loses nothing.
 *
 * @returns how many environments were counted
 */
export async function refreshPopularity(store: Store): Promise<number> {
  let counted = 0;
  for (;;) {
    const projectIds = await findProjectsToCount(store.reader, PROJECTS_A_BATCH);
    if (projectIds.length === 0) return counted;
    for (const projectId of projectIds) counted += await countProject(store, projectId);
  }
}

async function countProject(store: Store, projectId: string): Promise<number> {
  let counted = 0;
  await store.touchAll(async (db): Promise<readonly BookkeepingUpdate[]> => {
    const { popularity, environments } = await findUncountedEnvironments(db, projectId, ENVIRONMENTS_A_BATCH);
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

export const popularityJob: MakeJob = ({ store, settings }) => ({
  name: "popularity",
  everyMs: settings.popularityInterval * 1000,
  run: () => refreshPopularity(store),
});
