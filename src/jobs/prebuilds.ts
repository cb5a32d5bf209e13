import { duePrebuild, prebuildHour } from "../domain/project/prebuild.ts";
import { expirePrebuild } from "../services/project/prebuild-end.ts";
import { planPrebuilds } from "../services/project/prebuild-plan.ts";
import { findOvertimePrebuilds } from "../store/project/prebuild.ts";
import {
  findDuePrebuildSchedules,
  findPrebuildSchedule,
  setNextPrebuilds,
} from "../store/project/prebuild-schedule.ts";
import { findProject } from "../store/project/project.ts";
import { type Scope, type Store, SYSTEM, type WriteTransaction, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";
import { writeInEach } from "./job-writes.ts";

const EVERY_MS = 1_000;

/** Number of projects read at a time. */
const PROJECTS_PER_BATCH = 100;

/** Maximum number of prebuilds stopped per run: other writes wait for those of their organization. */
const PREBUILDS_PER_RUN = 100;

/**
 * Creates the prebuilds that are due. The prebuilds of a project are created in one
 * transaction that also sets when the next ones are due, so that a day is complete
 * or still due. After a downtime, a project gets only those of the latest day.
 *
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of the failures, after all other projects are done
 */
export async function createDuePrebuilds(store: Store, now: number): Promise<void> {
  for (;;) {
    const due = await findDuePrebuildSchedules(store.reader, now, PROJECTS_PER_BATCH);
    const made = await Promise.allSettled(
      due.map(({ project_id: projectId, organization_id: organizationId }) =>
        store.write(
          SYSTEM,
          "job/prebuilds",
          (tx) => createPrebuildsOfProject(tx, { organizationId }, projectId),
          within({ organizationId }),
        ),
      ),
    );
    const failures = made.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "prebuilds were not made");
    if (due.length < PROJECTS_PER_BATCH) return;
  }
}

/**
 * Stops the prebuilds that have reached their timeout, at most 100 per call.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of prebuilds stopped
 */
export async function stopTimedOutPrebuilds(store: Store, now: number): Promise<number> {
  const found = await findOvertimePrebuilds(store.reader, now, PREBUILDS_PER_RUN);
  return writeInEach(store, "job/prebuild-time", found, async (tx, scope) => {
    const overtime = await findOvertimePrebuilds(tx.db, now, PREBUILDS_PER_RUN, scope.organizationId);
    for (const { id } of overtime) await expirePrebuild(tx, scope, id);
    return overtime.length;
  });
}

async function createPrebuildsOfProject(
  tx: WriteTransaction,
  scope: Scope,
  projectId: string,
): Promise<void> {
  // Another run or a change of the project may have been written first.
  const schedule = await findPrebuildSchedule(tx.db, scope, projectId);
  if (!schedule || schedule.next_at > tx.now) return;
  const project = await findProject(tx.db, scope, projectId);
  const hourUtc = project && prebuildHour(project);
  if (!project || hourUtc === undefined)
    throw new Error(`the project ${projectId} gets no prebuilds, and they are due`);
  const { instantMs, nextMs } = duePrebuild(hourUtc, projectId, tx.now);
  await planPrebuilds(tx, scope, project, instantMs);
  await setNextPrebuilds(tx, scope, projectId, nextMs);
}

/** Creates the prebuilds that are due. */
export const prebuildsJob: JobFactory = ({ store, now }) => ({
  name: "prebuilds",
  everyMs: EVERY_MS,
  run: () => createDuePrebuilds(store, now()),
});

/** Stops prebuilds that have reached their timeout. */
export const prebuildTimeoutJob: JobFactory = ({ store, now }) => ({
  name: "prebuild-time",
  everyMs: EVERY_MS,
  run: () => stopTimedOutPrebuilds(store, now()),
});
