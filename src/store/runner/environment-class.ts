import type { Kysely } from "kysely";
import { type EnvironmentClass, EnvironmentClassSchema } from "#gen/service/v1/runner_configuration_pb.js";
import { fromBody, toBody } from "../json.ts";
import type { Schema } from "../schema.ts";
import type { Scope, WriteTransaction } from "../store.ts";

/** Returns those of the named classes that the scope has, in no order. */
export async function findEnvironmentClasses(
  db: Kysely<Schema>,
  scope: Scope,
  ids: readonly string[],
): Promise<EnvironmentClass[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("environment_class")
    .select("body")
    .where("organization_id", "=", scope.organizationId)
    .where("id", "in", [...new Set(ids)])
    .execute();
  return rows.map(({ body }) => fromBody(EnvironmentClassSchema, body));
}

export async function findEnvironmentClass(
  db: Kysely<Schema>,
  scope: Scope,
  id: string,
): Promise<EnvironmentClass | undefined> {
  const [found] = await findEnvironmentClasses(db, scope, [id]);
  return found;
}

/** Returns all classes of one runner, oldest first. */
export async function findClassesOfRunner(
  db: Kysely<Schema>,
  scope: Scope,
  runnerId: string,
): Promise<EnvironmentClass[]> {
  const rows = await db
    .selectFrom("environment_class")
    .select("body")
    .where("runner_id", "=", runnerId)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .execute();
  return rows.map(({ body }) => fromBody(EnvironmentClassSchema, body));
}

export async function insertEnvironmentClass(
  tx: WriteTransaction,
  scope: Scope,
  environmentClass: EnvironmentClass,
): Promise<void> {
  const columns = changingColumns(environmentClass);
  await tx.db
    .insertInto("environment_class")
    .values({
      ...columns,
      id: environmentClass.id,
      organization_id: scope.organizationId,
      runner_id: environmentClass.runnerId,
    })
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "environment_class",
    id: environmentClass.id,
    kind: "created",
    after: columns.body,
  });
}

export async function updateEnvironmentClass(
  tx: WriteTransaction,
  scope: Scope,
  before: EnvironmentClass,
  after: EnvironmentClass,
): Promise<void> {
  const columns = changingColumns(after);
  await tx.db
    .updateTable("environment_class")
    .set(columns)
    .where("id", "=", after.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "environment_class",
    id: after.id,
    kind: "updated",
    before: toBody(EnvironmentClassSchema, before),
    after: columns.body,
  });
}

/** Removes the row permanently; no project and no environment may refer to it. */
export async function removeEnvironmentClass(
  tx: WriteTransaction,
  scope: Scope,
  environmentClass: EnvironmentClass,
): Promise<void> {
  await tx.db
    .deleteFrom("environment_class")
    .where("id", "=", environmentClass.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    organizationId: scope.organizationId,
    type: "environment_class",
    id: environmentClass.id,
    kind: "deleted",
    before: toBody(EnvironmentClassSchema, environmentClass),
  });
}

function changingColumns(environmentClass: EnvironmentClass) {
  return {
    enabled: environmentClass.enabled ? 1 : 0,
    body: toBody(EnvironmentClassSchema, environmentClass),
  };
}
