import { addToPopularity } from "../domain/popularity.ts";
import { findUncountedEnvironments, type UncountedEnvironment } from "../store/popularity.ts";
import type { Store } from "../store/store.ts";

/** Environments read at a time; it bounds memory and the length of one transaction. */
const ENVIRONMENTS_A_BATCH = 1_000;

/**
 * Adds the environments created since the last run to their projects'
 * popularity. Projects without new ones are not touched: time alone changes no
 * order. A score and what it counts are written together, so that a run cut
 * short counts nothing twice.
 *
 * @returns how many environments were counted
 */
export async function refreshPopularity(store: Store): Promise<number> {
  let counted = 0;
  for (;;) {
    const batch = await findUncountedEnvironments(store.reader, ENVIRONMENTS_A_BATCH);
    if (batch.length === 0) return counted;
    for (const environments of Map.groupBy(batch, ({ projectId }) => projectId).values()) {
      await countEnvironments(store, environments);
    }
    counted += batch.length;
  }
}

async function countEnvironments(store: Store, environments: readonly UncountedEnvironment[]): Promise<void> {
  const [first] = environments;
  if (!first) return;
  const popularity = addToPopularity(
    first.popularity,
    environments.map(({ createdAt }) => createdAt),
  );
  await store.noteAll([
    { table: "project", id: first.projectId, values: { popularity } },
    ...environments.map(({ id }) => ({ table: "environment", id, values: { counted: 1 } }) as const),
  ]);
}
