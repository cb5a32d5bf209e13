import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { PrincipalSchema, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Prebuild, PrebuildState } from "../../domain/project/prebuild.ts";
import { fromStoredJson, JSON_FORM } from "../json.ts";
import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import { findWork, removeWork } from "../runner/work.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import type { PrebuildTable } from "./project-schema.ts";

/** The part of a prebuild's body that has no columns. Those of an earlier release have no times, and are scheduled. */
interface BodyOnly {
  readonly failure: string;
  readonly warning?: string;
  readonly creator?: JsonValue;
  readonly createdAt?: string;
  readonly updatedAt?: string;
  readonly endedAt?: string;
  readonly timeoutMs?: number;
  readonly changes?: number;
  readonly initializer?: JsonValue;
  readonly sourceSetBy?: JsonValue[];
}

/** The columns of a prebuild that are read with its body. */
export const PREBUILD_COLUMNS = [
  "id",
  "project_id",
  "environment_class_id",
  "runner_id",
  "state",
  "instant",
  "executor_id",
  "executor_principal",
  "stops_at",
] as const;

/** Converts a row to a prebuild. */
export function prebuildOfRow(
  row: Pick<PrebuildTable, (typeof PREBUILD_COLUMNS)[number] | "body">,
): Prebuild {
  const { creator, initializer, sourceSetBy, ...body } = JSON.parse(row.body) as BodyOnly;
  const { failure, warning = "", timeoutMs, changes = 0, createdAt, updatedAt, endedAt } = body;
  const createdAtMs = createdAt === undefined ? row.instant : Date.parse(createdAt);
  return {
    id: row.id,
    projectId: row.project_id,
    environmentClassId: row.environment_class_id,
    runnerId: row.runner_id,
    executor: create(SubjectSchema, { id: row.executor_id, principal: row.executor_principal }),
    ...(creator !== undefined && { creator: fromStoredJson(SubjectSchema, creator) }),
    instantMs: row.instant,
    createdAtMs,
    updatedAtMs: updatedAt === undefined ? createdAtMs : Date.parse(updatedAt),
    ...(endedAt !== undefined && { endedAtMs: Date.parse(endedAt) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    changes,
    state: row.state,
    ...(row.stops_at !== null && { stopsAtMs: row.stops_at }),
    ...(initializer !== undefined && {
      initializer: fromStoredJson(EnvironmentInitializerSchema, initializer),
    }),
    ...(sourceSetBy && { sourceSetBy: sourceSetBy.map((subject) => fromStoredJson(SubjectSchema, subject)) }),
    failure,
    warning,
  };
}

/** Returns the stored form of a prebuild, which is also that of the audit trail. */
function bodyOf(prebuild: Prebuild): string {
  const { creator, executor, endedAtMs, timeoutMs, initializer, sourceSetBy, stopsAtMs, warning } = prebuild;
  return JSON.stringify({
    id: prebuild.id,
    projectId: prebuild.projectId,
    environmentClassId: prebuild.environmentClassId,
    runnerId: prebuild.runnerId,
    executor: { id: executor.id, principal: PrincipalSchema.value[executor.principal]?.name },
    ...(creator && { creator: toJson(SubjectSchema, creator, JSON_FORM) }),
    instant: new Date(prebuild.instantMs).toISOString(),
    createdAt: new Date(prebuild.createdAtMs).toISOString(),
    updatedAt: new Date(prebuild.updatedAtMs).toISOString(),
    ...(endedAtMs !== undefined && { endedAt: new Date(endedAtMs).toISOString() }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    changes: prebuild.changes,
    state: prebuild.state,
    ...(stopsAtMs !== undefined && { stopsAt: new Date(stopsAtMs).toISOString() }),
    ...(initializer && { initializer: toJson(EnvironmentInitializerSchema, initializer, JSON_FORM) }),
    ...(sourceSetBy && { sourceSetBy: sourceSetBy.map((each) => toJson(SubjectSchema, each, JSON_FORM)) }),
    failure: prebuild.failure,
    ...(warning !== "" && { warning }),
  } satisfies BodyOnly & Record<string, unknown>);
}

const selectPrebuild = prepared<{ id: string; organizationId: string }, PrebuildTable>(
  (db, { id, organizationId }) =>
    db.selectFrom("prebuild").selectAll().where("id", "=", id).where("organization_id", "=", organizationId),
);

export async function findPrebuild(db: Reader, scope: Scope, id: string): Promise<Prebuild | undefined> {
  const [row] = await selectPrebuild(db, { id, organizationId: scope.organizationId });
  return row && prebuildOfRow(row);
}

/** The conditions for prebuilds; an omitted field restricts nothing. */
export interface PrebuildFilter {
  readonly projectId?: string;
  readonly environmentClassId?: string;
  readonly runnerId?: string;
  readonly states?: readonly PrebuildState[];
}

/** Returns the prebuilds that match all conditions of a filter, the latest due first. */
export async function findPrebuilds(
  db: Reader,
  scope: Scope,
  { projectId, environmentClassId, runnerId, states }: PrebuildFilter,
): Promise<Prebuild[]> {
  let query = builderOf(db)
    .selectFrom("prebuild")
    .selectAll()
    .where("organization_id", "=", scope.organizationId);
  if (projectId !== undefined) query = query.where("project_id", "=", projectId);
  if (environmentClassId !== undefined) query = query.where("environment_class_id", "=", environmentClassId);
  if (runnerId !== undefined) query = query.where("runner_id", "=", runnerId);
  if (states !== undefined) query = query.where("state", "in", states);
  const rows = await query.orderBy("instant", "desc").orderBy("id", "desc").execute();
  return rows.map(prebuildOfRow);
}

const selectReady = prepared<
  { organizationId: string; projectId: string; environmentClassId: string; state: PrebuildState },
  PrebuildTable
>((db, { organizationId, projectId, environmentClassId, state }) =>
  db
    .selectFrom("prebuild")
    .selectAll()
    .where("project_id", "=", projectId)
    .where("environment_class_id", "=", environmentClassId)
    .where("state", "=", state)
    .where("organization_id", "=", organizationId)
    .orderBy("instant", "desc")
    .limit(1),
);

/** Returns the ready workspace of a project and a class, the latest due of several. */
export async function findReadyPrebuild(
  db: Reader,
  { organizationId }: Scope,
  { projectId, environmentClassId }: Pick<Prebuild, "projectId" | "environmentClassId">,
): Promise<Prebuild | undefined> {
  const [row] = await selectReady(db, { organizationId, projectId, environmentClassId, state: "ready" });
  return row && prebuildOfRow(row);
}

/**
 * Returns up to `limit` running prebuilds that have timed out at `now`. For the system.
 * @param organizationId of the prebuilds; default any
 */
export async function findOvertimePrebuilds(
  db: Reader,
  now: number,
  limit: number,
  organizationId?: string,
): Promise<{ readonly organizationId: string; readonly id: string }[]> {
  return builderOf(db)
    .selectFrom("prebuild")
    .select(["organization_id as organizationId", "id"])
    .where("stops_at", "<=", now)
    .$if(organizationId !== undefined, (prebuilds) =>
      prebuilds.where("organization_id", "=", organizationId as string),
    )
    .orderBy("stops_at")
    .limit(limit)
    .execute();
}

const insertRow = prepared<PrebuildTable, { id: string }>((db, row) =>
  db
    .insertInto("prebuild")
    .values({
      id: row.id,
      organization_id: row.organization_id,
      project_id: row.project_id,
      environment_class_id: row.environment_class_id,
      runner_id: row.runner_id,
      state: row.state,
      instant: row.instant,
      executor_id: row.executor_id,
      executor_principal: row.executor_principal,
      creator_id: row.creator_id,
      stops_at: row.stops_at,
      body: row.body,
    })
    .onConflict((conflict) => conflict.columns(["project_id", "environment_class_id", "instant"]).doNothing())
    .returning("id"),
);

/**
 * Adds a prebuild, unless its project and class already have one for the same time.
 * @returns whether it was added
 */
export async function insertPrebuild(
  tx: WriteTransaction,
  scope: Scope,
  prebuild: Prebuild,
): Promise<boolean> {
  const body = bodyOf(prebuild);
  const [inserted] = await insertRow(tx.db, {
    id: prebuild.id,
    organization_id: scope.organizationId,
    project_id: prebuild.projectId,
    environment_class_id: prebuild.environmentClassId,
    runner_id: prebuild.runnerId,
    state: prebuild.state,
    instant: prebuild.instantMs,
    executor_id: prebuild.executor.id,
    executor_principal: prebuild.executor.principal,
    creator_id: prebuild.creator?.id ?? null,
    stops_at: prebuild.stopsAtMs ?? null,
    body,
  });
  if (!inserted) return false;
  record(tx, scope, { id: prebuild.id, kind: "created", after: body });
  return true;
}

const updateRow = prepared<
  Pick<PrebuildTable, "id" | "organization_id" | "state" | "stops_at" | "body">,
  unknown
>((db, row) =>
  db
    .updateTable("prebuild")
    .set({ state: row.state, stops_at: row.stops_at, body: row.body })
    .where("id", "=", row.id)
    .where("organization_id", "=", row.organization_id),
);

/**
 * Writes the state of a prebuild, if it has changed, with the time of the change; its project, class and due time
 * never change.
 * @returns the prebuild after the change
 */
export async function updatePrebuild(
  tx: WriteTransaction,
  scope: Scope,
  before: Prebuild,
  after: Prebuild,
): Promise<Prebuild> {
  const old = bodyOf(before);
  if (bodyOf(after) === old) return before;
  const changed = { ...after, updatedAtMs: tx.now, changes: before.changes + 1 };
  const body = bodyOf(changed);
  const { id, state } = after;
  const stopsAt = after.stopsAtMs ?? null;
  await updateRow(tx.db, { id, organization_id: scope.organizationId, state, stops_at: stopsAt, body });
  record(tx, scope, { id, kind: "updated", before: old, after: body });
  return changed;
}

/** Removes the row permanently, with its work. */
export async function removePrebuild(
  tx: WriteTransaction,
  scope: Scope,
  prebuild: Prebuild,
  reason?: string,
): Promise<void> {
  const { id } = prebuild;
  await builderOf(tx.db)
    .deleteFrom("prebuild")
    .where("id", "=", id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  for (const kind of [WorkKind.PREBUILD, WorkKind.PREBUILD_REMOVAL]) {
    const work = await findWork(tx.db, scope, kind, id);
    if (work) await removeWork(tx, work.id);
  }
  record(tx, scope, { id, kind: "deleted", before: bodyOf(prebuild), ...(reason && { reason }) });
}

type Recorded = Omit<Parameters<WriteTransaction["record"]>[0], "organizationId" | "type">;

function record(tx: WriteTransaction, { organizationId }: Scope, change: Recorded): void {
  tx.record({ organizationId, type: "prebuild", ...change });
}
