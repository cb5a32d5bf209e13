import { findWholeProject, removeProject } from "../store/project/project.ts";
import { findRemovableProjects } from "../store/project/project-removal.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** Maximum number of projects removed per run. A run is one transaction, which other writes wait for. */
const PROJECTS_PER_RUN = 100;

/**
 * Removes the projects that are marked for removal, have no prebuilds left and are
 * used by no environment, at most 100 per call.
 *
 * @returns the number of projects removed
 */
export function removeDeletedProjects(store: Store): Promise<number> {
  return store.write(SYSTEM, "job/project-removal", async (tx) => {
    const removable = await findRemovableProjects(tx.db, PROJECTS_PER_RUN);
    for (const { id, organizationId } of removable) {
      const scope = { organizationId };
      const project = await findWholeProject(tx.db, scope, id);
      if (project) await removeProject(tx, scope, project);
    }
    return removable.length;
  });
}

/** Removes projects that are marked for removal. */
export const projectRemovalJob: JobFactory = ({ store, settings }) => ({
  name: "project-removal",
  everyMs: settings.removalInterval * 1000,
  run: () => removeDeletedProjects(store),
});
