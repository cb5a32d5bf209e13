import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Environment, EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { environmentSearchText, isStopped } from "../../domain/environment/environment.ts";
import { fromBody, toBody, toJsonObject } from "../json.ts";
import { prepared } from "../prepared.ts";
import { countRemovedEnvironment } from "../project/popularity.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";
import { storedMessage } from "../stored-message.ts";
import type { EnvironmentTable } from "./environment-schema.ts";
import {
  type EnvironmentRemovalOptions,
  type EnvironmentWorkOptions,
  findEnvironmentDependents,
  queueEnvironmentWork,
  syncEnvironmentWork,
} from "./environment-work.ts";
import { hasRecordsWithoutAction, removeUnownedRecords } from "./unowned-records.ts";

const selectEnvironment = prepared<
  { id: string; organizationId: string },
  { body: string; runnerId: string | null }
>((db, { id, organizationId }) =>
  db
    .selectFrom("environment")
    .select(["body", "runner_id as runnerId"])
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/** Returns an environment, decoded only when it is read since most are only sent, and the id of its runner. */
export async function findStoredEnvironment(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<{ readonly environment: Environment; readonly runnerId: string | null } | undefined> {
  const [row] = await selectEnvironment(db, { id, organizationId: scope.organizationId });
  return row && { environment: storedMessage(EnvironmentSchema, row.body), runnerId: row.runnerId };
}

export async function findEnvironment(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<Environment | undefined> {
  const [row] = await selectEnvironment(db, { id, organizationId: scope.organizationId });
  return row && fromBody(EnvironmentSchema, row.body);
}

/** Returns the number of environments that are bound to a runner, in any phase, counted up to `limit`. */
export async function countEnvironmentsOfRunner(
  db: Reader,
  scope: Scope,
  runnerId: string,
  limit: number,
): Promise<number> {
  const rows = await builderOf(db)
    .selectFrom("environment")
    .select("id")
    .where("runner_id", "=", runnerId)
    .where("organization_id", "=", scope.organizationId)
    .limit(limit)
    .execute();
  return rows.length;
}

/** Returns up to `limit` environments that are bound to a runner, in any phase, oldest first. */
export async function findEnvironmentsOfRunner(
  db: Reader,
  scope: Scope,
  runnerId: string,
  limit: number,
): Promise<Environment[]> {
  const rows = await builderOf(db)
    .selectFrom("environment")
    .select("body")
    .where("runner_id", "=", runnerId)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ body }) => fromBody(EnvironmentSchema, body));
}

/** The conditions for environments of a creator. */
export interface EnvironmentsOfCreator {
  readonly creatorId: string;
  /** Matches environments whose phase or desired phase is one of these. */
  readonly phases: readonly EnvironmentPhase[];
  /** Excludes environments whose desired phase is one of these. */
  readonly exceptWanted?: readonly EnvironmentPhase[];
}

/** Returns up to `limit` environments that a user created, by their ids, after `afterId`. */
export async function findEnvironmentsOfCreator(
  db: Reader,
  scope: Scope,
  { creatorId, phases, exceptWanted = [] }: EnvironmentsOfCreator,
  limit: number,
  afterId = "",
): Promise<Environment[]> {
  let query = builderOf(db)
    .selectFrom("environment")
    .select("body")
    .where("organization_id", "=", scope.organizationId)
    .where("creator_id", "=", creatorId)
    .where((eb) => eb.or([eb("phase", "in", phases), eb("desired_phase", "in", phases)]))
    .where("id", ">", afterId);
  if (exceptWanted.length > 0) query = query.where("desired_phase", "not in", exceptWanted);
  const rows = await query.orderBy("id").limit(limit).execute();
  return rows.map(({ body }) => fromBody(EnvironmentSchema, body));
}

const insertRow = prepared<EnvironmentTable, unknown>((db, row) =>
  db.insertInto("environment").values({
    id: row.id,
    organization_id: row.organization_id,
    project_id: row.project_id,
    runner_id: row.runner_id,
    environment_class_id: row.environment_class_id,
    creator_id: row.creator_id,
    phase: row.phase,
    desired_phase: row.desired_phase,
    session_id: row.session_id,
    created_at: row.created_at,
    archived_at: row.archived_at,
    counted: row.counted,
    search_text: row.search_text,
    body: row.body,
    stopped_at: row.stopped_at,
    lockdown_at: row.lockdown_at,
    security_policy_id: row.security_policy_id,
  }),
);

/** Adds an environment, and queues its work for a runner. */
export async function insertEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
  options: EnvironmentWorkOptions = {},
): Promise<void> {
  const { metadata } = environment;
  const columns = changingColumns(environment);
  await insertRow(tx.db, {
    ...columns,
    id: environment.id,
    organization_id: scope.organizationId,
    project_id: metadata?.projectId || null,
    creator_id: metadata?.creator?.id ?? "",
    session_id: metadata?.sessionId || null,
    created_at: metadata?.createdAt ? timestampMs(metadata.createdAt) : tx.now,
    // Without a project there is no popularity to update.
    counted: metadata?.projectId ? 0 : 1,
    stopped_at: isStopped(environment) ? tx.now : null,
    lockdown_at: metadata?.lockdownAt ? timestampMs(metadata.lockdownAt) : null,
  });
  await queueEnvironmentWork(tx, scope, environment, options);
  tx.record({
    organizationId: scope.organizationId,
    type: "environment",
    id: environment.id,
    kind: "created",
    after: columns.body,
  });
}

type ChangingColumns = ReturnType<typeof changingColumns>;

const updateRow = prepared<ChangingColumns & { id: string; organization_id: string }, unknown>((db, row) =>
  db
    .updateTable("environment")
    .set({
      runner_id: row.runner_id,
      environment_class_id: row.environment_class_id,
      phase: row.phase,
      desired_phase: row.desired_phase,
      archived_at: row.archived_at,
      search_text: row.search_text,
      security_policy_id: row.security_policy_id,
      body: row.body,
    })
    .where("id", "=", row.id)
    .where("organization_id", "=", row.organization_id),
);

const setStop = prepared<{ id: string; organizationId: string; stoppedAt: number | null }, unknown>(
  (db, { id, organizationId, stoppedAt }) =>
    db
      .updateTable("environment")
      .set({ stopped_at: stoppedAt })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/** Options of a change of an environment. */
export interface EnvironmentUpdateOptions {
  /** True when the same write removes the environment: the change is recorded, but the row is not written. */
  readonly isRemovedNext?: boolean;
}

/** Changes an environment; when its desired phase changes, the queue is updated. */
export async function updateEnvironment(
  tx: WriteTransaction,
  scope: Scope,
  before: Environment,
  after: Environment,
  { isRemovedNext = false }: EnvironmentUpdateOptions = {},
): Promise<void> {
  const columns = changingColumns(after);
  if (!isRemovedNext) {
    await updateRow(tx.db, { ...columns, id: after.id, organization_id: scope.organizationId });
    // An environment that leaves the archive would otherwise be archived again at once.
    const isUnarchived = before.metadata?.archivedAt !== undefined && !after.metadata?.archivedAt;
    if (isStopped(before) !== isStopped(after) || (isUnarchived && isStopped(after))) {
      const stoppedAt = isStopped(after) ? tx.now : null;
      await setStop(tx.db, { id: after.id, organizationId: scope.organizationId, stoppedAt });
    }
  }
  await syncEnvironmentWork(tx, scope, before, after);
  tx.record({
    organizationId: scope.organizationId,
    type: "environment",
    id: after.id,
    kind: "updated",
    before: toJsonObject(EnvironmentSchema, before),
    after: columns.body,
  });
}

type RemovedRow = Pick<EnvironmentTable, "project_id" | "created_at" | "counted"> & {
  readonly has_records: number;
};

const selectRemoved = prepared<{ id: string; organizationId: string }, RemovedRow>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("environment")
      .select((eb) => [
        "project_id",
        "created_at",
        "counted",
        hasRecordsWithoutAction(eb, id).as("has_records"),
      ])
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

const deleteRow = prepared<{ id: string; organizationId: string }, unknown>((db, { id, organizationId }) =>
  db.deleteFrom("environment").where("id", "=", id).where("organization_id", "=", organizationId),
);

/**
 * Finds what is removed with an environment: its work and its tokens.
 * @returns the function that removes its row permanently, with these; the use of its project remains recorded
 */
export async function findRemoval(
  tx: WriteTransaction,
  scope: Scope,
  environment: Environment,
  options?: EnvironmentRemovalOptions,
): Promise<() => Promise<void>> {
  const key = { id: environment.id, organizationId: scope.organizationId };
  const [[removed], removeDependents] = await Promise.all([
    selectRemoved(tx.db, key),
    findEnvironmentDependents(tx, scope, environment, options),
  ]);
  return async () => {
    if (!removed) return;
    await deleteRow(tx.db, key);
    await removeDependents();
    if (removed.has_records === 1) await removeUnownedRecords(tx, scope, environment.id);
    if (removed.project_id !== null && removed.counted === 0) {
      await countRemovedEnvironment(tx.db, scope, removed.project_id, removed.created_at);
    }
    tx.record({
      organizationId: scope.organizationId,
      type: "environment",
      id: environment.id,
      kind: "deleted",
      // As objects if no row needs the text, which the record would have to parse.
      before: toJsonObject(EnvironmentSchema, environment),
    });
  };
}

function changingColumns(environment: Environment) {
  const { metadata, spec, status } = environment;
  return {
    runner_id: metadata?.runnerId || null,
    environment_class_id: spec?.machine?.class || null,
    phase: status?.phase ?? EnvironmentPhase.UNSPECIFIED,
    desired_phase: spec?.desiredPhase ?? EnvironmentPhase.UNSPECIFIED,
    archived_at: metadata?.archivedAt ? timestampMs(metadata.archivedAt) : null,
    search_text: environmentSearchText(environment),
    security_policy_id: spec?.securityPolicyId || null,
    body: toBody(EnvironmentSchema, environment),
  };
}
