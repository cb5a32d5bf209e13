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
import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

const EVERY_MS = 1_000;

/** Projects that are looked up at a time. */
const PROJECTS_A_BATCH = 100;

/** Prebuilds stopped in one run: each run is one transaction, which other writes wait for. */
const PREBUILDS_A_RUN = 100;

/**
 * Makes the prebuilds that are due, those of each project in a write of its own
 * that also sets when they are due next: a day is done whole or still due. After
 * a downtime a project gets the latest day's only.
 *
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of what failed, once all the others were done
 */
export async function makeDuePrebuilds(store: Store, now: number): Promise<void> {
  for (;;) {
    const due = await findDuePrebuildSchedules(store.reader, now, PROJECTS_A_BATCH);
    const made = await Promise.allSettled(
      due.map(({ project_id: projectId }) =>
        store.write(SYSTEM, "job/prebuilds", (tx) => makePrebuilds(tx, projectId)),
      ),
    );
    const failures = made.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "prebuilds were not made");
    if (due.length < PROJECTS_A_BATCH) return;
  }
}

/**
 * Stops the prebuilds whose time is over, at most 100 of them.
 *
 * @param now milliseconds since 1970 UTC
 * @returns how many
 */
export async function stopTimedOutPrebuilds(store: Store, now: number): Promise<number> {
  // Nearly always there is none, and a transaction would be waited for in vain.
  if ((await findOvertimePrebuilds(store.reader, now, 1)).length === 0) return 0;
  return store.write(SYSTEM, "job/prebuild-time", async (tx) => {
    const overtime = await findOvertimePrebuilds(tx.db, now, PREBUILDS_A_RUN);
    for (const { organizationId, id } of overtime) await expirePrebuild(tx, { organizationId }, id);
    return overtime.length;
  });
}

async function makePrebuilds(tx: WriteTransaction, projectId: string): Promise<void> {
  // Another run, or a change of the project, may have come before this write.
  const schedule = await findPrebuildSchedule(tx.db, projectId);
  if (!schedule || schedule.next_at > tx.now) return;
  const scope = { organizationId: schedule.organization_id };
  const project = await findProject(tx.db, scope, projectId);
  const hourUtc = project && prebuildHour(project);
  if (!project || hourUtc === undefined)
    throw new Error(`the project ${projectId} gets no prebuilds, and they are due`);
  const { instantMs, nextMs } = duePrebuild(hourUtc, projectId, tx.now);
  await planPrebuilds(tx, scope, project, instantMs);
  await setNextPrebuilds(tx, projectId, nextMs);
}

export const prebuildsJob: MakeJob = ({ store, now }) => ({
  name: "prebuilds",
  everyMs: EVERY_MS,
  run: () => makeDuePrebuilds(store, now()),
});

export const prebuildTimeJob: MakeJob = ({ store, now }) => ({
  name: "prebuild-time",
  everyMs: EVERY_MS,
  run: () => stopTimedOutPrebuilds(store, now()),
});
