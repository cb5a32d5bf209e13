import { findWholeProject, removeProject } from "../store/project/project.ts";
import { findRemovableProjects } from "../store/project/project-removal.ts";
import type { Store } from "../store/store.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

/** Maximum number of projects removed per run: other writes wait for those of their organization. */
const PROJECTS_PER_RUN = 100;

/**
 * Removes the projects that are marked for removal, have no prebuilds left and are
 * used by no environment, at most 100 per call.
 *
 * @returns the number of projects removed
 */
export async function removeDeletedProjects(store: Store): Promise<number> {
  const found = await findRemovableProjects(store.reader, PROJECTS_PER_RUN);
  return writeInEach(store, "job/project-removal", found, async (tx, scope) => {
    const removable = await findRemovableProjects(tx.db, PROJECTS_PER_RUN, scope.organizationId);
    for (const { id } of removable) {
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
