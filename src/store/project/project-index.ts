import type { Project } from "#gen/service/v1/project_pb.js";
import { projectRemotes } from "../../domain/project/project.ts";
import { prepared, preparedForRows } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { findLocalRunnerId } from "../runner/runner.ts";
import type { Reader, Scope } from "../store.ts";
import type {
  ProjectAnnotationTable,
  ProjectEnvironmentClassTable,
  ProjectRemoteTable,
} from "./project-schema.ts";

const insertRemotes = preparedForRows<ProjectRemoteTable>((db, rows) =>
  db.insertInto("project_remote").values(
    rows.map((row) => ({
      project_id: row.project_id,
      organization_id: row.organization_id,
      remote_uri: row.remote_uri,
    })),
  ),
);

const insertAnnotations = preparedForRows<ProjectAnnotationTable>((db, rows) =>
  db.insertInto("project_annotation").values(
    rows.map((row) => ({
      project_id: row.project_id,
      organization_id: row.organization_id,
      key: row.key,
      value: row.value,
    })),
  ),
);

const insertClass = prepared<ProjectEnvironmentClassTable, unknown>((db, row) =>
  db.insertInto("project_environment_class").values({
    project_id: row.project_id,
    position: row.position,
    runner_id: row.runner_id,
    environment_class_id: row.environment_class_id,
  }),
);

const deleteRemotes = prepared<{ projectId: string }, unknown>((db, { projectId }) =>
  db.deleteFrom("project_remote").where("project_id", "=", projectId),
);

const deleteClasses = prepared<{ projectId: string }, unknown>((db, { projectId }) =>
  db.deleteFrom("project_environment_class").where("project_id", "=", projectId),
);

const selectRunnerOfClass = prepared<{ id: string; organizationId: string }, { runner_id: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("environment_class")
      .select("runner_id")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Updates the rows that filters use when a project changes from one state to another. */
export async function replaceProjectIndex(
  db: Reader,
  scope: Scope,
  before: Project | undefined,
  after: Project,
): Promise<void> {
  const owned = { project_id: after.id, organization_id: scope.organizationId };
  const remotes = projectRemotes(after);
  if (!before || projectRemotes(before).join("\n") !== remotes.join("\n")) {
    if (before) await deleteRemotes(db, { projectId: after.id });
    await insertRemotes(
      db,
      remotes.map((remote) => ({ ...owned, remote_uri: remote })),
    );
  }
  if (!before) {
    // Annotations are set at creation and no operation changes them later.
    const annotations = Object.entries(after.metadata?.annotations ?? {});
    await insertAnnotations(
      db,
      annotations.map(([key, value]) => ({ ...owned, key, value })),
    );
  }
  // A class never changes its runner, so the same classes have the same rows.
  if (before && classNames(before) === classNames(after)) return;
  if (before) await deleteClasses(db, { projectId: after.id });
  for (const [position, { environmentClass }] of after.environmentClasses.entries()) {
    await insertClass(db, {
      project_id: after.id,
      position,
      ...(await runnerOf(db, scope, environmentClass)),
    });
  }
}

function classNames({ environmentClasses }: Project): string {
  return environmentClasses.map(({ environmentClass }) => String(environmentClass.value)).join();
}

async function runnerOf(
  db: Reader,
  scope: Scope,
  entry: Project["environmentClasses"][number]["environmentClass"],
): Promise<{ runner_id: string; environment_class_id: string | null }> {
  if (entry.case !== "environmentClassId") {
    return { runner_id: await findLocalRunnerId(db, scope), environment_class_id: null };
  }
  const [row] = await selectRunnerOfClass(db, { id: entry.value, organizationId: scope.organizationId });
  if (!row) throw new Error(`the environment class ${entry.value} does not exist`);
  return { runner_id: row.runner_id, environment_class_id: entry.value };
}

/**
 * Returns the git remotes of projects, by the project's id; a project without remotes, or that does
 * not exist, has no entry.
 */
export async function findProjectRemotes(
  db: Reader,
  scope: Scope,
  projectIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (projectIds.length === 0) return new Map();
  const rows = await builderOf(db)
    .selectFrom("project_remote")
    .innerJoin("project", "project.id", "project_remote.project_id")
    .select(["project_remote.project_id", "project_remote.remote_uri"])
    .where("project.organization_id", "=", scope.organizationId)
    .where("project.id", "in", projectIds)
    .execute();
  const remotes = Map.groupBy(rows, (row) => row.project_id);
  return new Map([...remotes].map(([id, found]) => [id, found.map((row) => row.remote_uri)]));
}
