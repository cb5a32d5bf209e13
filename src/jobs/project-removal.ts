import { findWholeProject, removeProject } from "../store/project/project.ts";
import { findRemovableProjects } from "../store/project/project-removal.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** Projects removed in one run: each run is one transaction, which other writes wait for. */
const PROJECTS_A_RUN = 100;

/**
 * Removes the projects that are marked for removal once no environment refers
 * to them and no prebuild of theirs is left, at most 100 of them.
 *
 * @returns how many were removed
 */
export function removeDeletedProjects(store: Store): Promise<number> {
  return store.write(SYSTEM, "job/project-removal", async (tx) => {
    const removable = await findRemovableProjects(tx.db, PROJECTS_A_RUN);
    for (const { id, organizationId } of removable) {
      const scope = { organizationId };
      const project = await findWholeProject(tx.db, scope, id);
      if (project) await removeProject(tx, scope, project);
    }
    return removable.length;
  });
}

export const projectRemovalJob: MakeJob = ({ store, settings }) => ({
  name: "project-removal",
  everyMs: settings.removalInterval * 1000,
  run: () => removeDeletedProjects(store),
});
