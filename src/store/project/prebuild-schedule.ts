import type { Project } from "#gen/service/v1/project_pb.js";
import { prebuildHour } from "../../domain/project/prebuild.ts";
import { prebuildInstant } from "../../domain/project/schedule.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { PrebuildScheduleTable } from "./project-schema.ts";

const upsertSchedule = prepared<PrebuildScheduleTable, unknown>((db, row) =>
  db
    .insertInto("prebuild_schedule")
    .values({ project_id: row.project_id, organization_id: row.organization_id, next_at: row.next_at })
    .onConflict((conflict) =>
      conflict.column("project_id").doUpdateSet({ next_at: (eb) => eb.ref("excluded.next_at") }),
    ),
);

const deleteSchedule = prepared<{ projectId: string }, unknown>((db, { projectId }) =>
  db.deleteFrom("prebuild_schedule").where("project_id", "=", projectId),
);

/**
 * Updates the time of a project's next prebuilds. It stays while the configured hour does not change, so that no due
 * prebuild is lost.
 */
export async function syncPrebuildSchedule(
  tx: WriteTransaction,
  scope: Scope,
  before: Project | undefined,
  after: Project,
): Promise<void> {
  const hourUtc = prebuildHour(after);
  if (hourUtc === (before && prebuildHour(before))) return;
  if (hourUtc === undefined) await deleteSchedule(tx.db, { projectId: after.id });
  else {
    await upsertSchedule(tx.db, {
      project_id: after.id,
      organization_id: scope.organizationId,
      next_at: prebuildInstant(hourUtc, after.id, tx.now),
    });
  }
}

/**
 * Returns up to `limit` projects whose prebuilds are due at `now`, of all organizations, the
 * longest due first. For the system.
 */
export async function findDuePrebuildSchedules(
  db: Reader,
  now: number,
  limit: number,
): Promise<PrebuildScheduleTable[]> {
  return builderOf(db)
    .selectFrom("prebuild_schedule")
    .selectAll()
    .where("next_at", "<=", now)
    .orderBy("next_at")
    .orderBy("project_id")
    .limit(limit)
    .execute();
}

const selectSchedule = prepared<{ projectId: string; organizationId: string }, PrebuildScheduleTable>(
  (db, { projectId, organizationId }) =>
    db
      .selectFrom("prebuild_schedule")
      .selectAll()
      .where("project_id", "=", projectId)
      .where("organization_id", "=", organizationId),
);

/**
 * Returns the time at which a project's prebuilds are due next; undefined for a project without
 * prebuilds.
 */
export async function findPrebuildSchedule(
  db: Reader,
  { organizationId }: Scope,
  projectId: string,
): Promise<PrebuildScheduleTable | undefined> {
  const [row] = await selectSchedule(db, { projectId, organizationId });
  return row;
}

const setNext = prepared<{ projectId: string; organizationId: string; nextAt: number }, unknown>(
  (db, { projectId, organizationId, nextAt }) =>
    db
      .updateTable("prebuild_schedule")
      .set({ next_at: nextAt })
      .where("project_id", "=", projectId)
      .where("organization_id", "=", organizationId),
);

/** Sets the time at which a project's prebuilds are due next. */
export async function setNextPrebuilds(
  tx: WriteTransaction,
  { organizationId }: Scope,
  projectId: string,
  nextAt: number,
): Promise<void> {
  await setNext(tx.db, { projectId, organizationId, nextAt });
}
