import { create } from "@bufbuild/protobuf";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { type Project_UsedBy, Project_UsedBySchema } from "#gen/service/v1/project_pb.js";
import { toBody } from "../json.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { ProjectUseTable } from "./project-schema.ts";

/** Maximum number of users that a project names (contract, Project.UsedBy.subjects). */
const RECENT_SUBJECTS = 10;

const upsertUse = prepared<ProjectUseTable, unknown>((db, row) =>
  db
    .insertInto("project_use")
    .values({
      project_id: row.project_id,
      principal: row.principal,
      subject_id: row.subject_id,
      environment_id: row.environment_id,
    })
    .onConflict((conflict) =>
      conflict
        .columns(["project_id", "principal", "subject_id"])
        .doUpdateSet((eb) => ({ environment_id: eb.ref("excluded.environment_id") }))
        // A clock that was set back produces lower ids; the newest stays the newest.
        .whereRef("excluded.environment_id", ">", "project_use.environment_id"),
    ),
);

const selectRecent = prepared<
  { projectId: string; limit: number },
  Pick<ProjectUseTable, "subject_id" | "principal">
>((db, { projectId, limit }) =>
  db
    .selectFrom("project_use")
    .select(["subject_id", "principal"])
    .where("project_id", "=", projectId)
    .orderBy("environment_id", "desc")
    .limit(limit),
);

const countSubjects = prepared<{ projectId: string }, { count: number }>((db, { projectId }) =>
  db
    .selectFrom("project_use")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("project_id", "=", projectId),
);

const updateUsedBy = prepared<{ id: string; organizationId: string; usedBy: string }, unknown>(
  (db, { id, organizationId, usedBy }) =>
    db
      .updateTable("project")
      .set({ used_by: usedBy })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/**
 * Records that a subject created an environment from a project of the scope, and updates the
 * project's `used_by`. This is not a change in the project's own history, but in that of the
 * environment.
 */
export async function insertProjectUse(
  tx: WriteTransaction,
  scope: Scope,
  projectId: string,
  subject: Subject,
  environmentId: string,
): Promise<void> {
  await upsertUse(tx.db, {
    project_id: projectId,
    principal: subject.principal,
    subject_id: subject.id,
    environment_id: environmentId,
  });
  await updateUsedBy(tx.db, {
    id: projectId,
    organizationId: scope.organizationId,
    usedBy: toBody(Project_UsedBySchema, await usedBy(tx.db, projectId)),
  });
}

async function usedBy(db: Reader, projectId: string): Promise<Project_UsedBy> {
  const recent = await selectRecent(db, { projectId, limit: RECENT_SUBJECTS });
  const [counted] = await countSubjects(db, { projectId });
  return create(Project_UsedBySchema, {
    totalSubjects: counted?.count ?? 0,
    subjects: recent.map(({ subject_id, principal }) => ({ id: subject_id, principal })),
  });
}
