import { type EnvironmentClass, EnvironmentClassSchema } from "#gen/service/v1/runner_configuration_pb.js";
import { fromBody, toBody } from "../json.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

/** Returns the named classes that exist in the scope, in no particular order. */
export async function findEnvironmentClasses(
  db: Reader,
  scope: Scope,
  ids: readonly string[],
): Promise<EnvironmentClass[]> {
  if (ids.length === 0) return [];
  const rows = await builderOf(db)
    .selectFrom("environment_class")
    .select("body")
    .where("organization_id", "=", scope.organizationId)
    .where("id", "in", [...new Set(ids)])
    .execute();
  return rows.map(({ body }) => fromBody(EnvironmentClassSchema, body));
}

export async function findEnvironmentClass(
  db: Reader,
  scope: Scope,
  id: string,
): Promise<EnvironmentClass | undefined> {
  const [found] = await findEnvironmentClasses(db, scope, [id]);
  return found;
}

/** Returns all classes of one runner, oldest first. */
export async function findClassesOfRunner(
  db: Reader,
  scope: Scope,
  runnerId: string,
): Promise<EnvironmentClass[]> {
  const rows = await builderOf(db)
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
  await builderOf(tx.db)
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
  await builderOf(tx.db)
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
  await builderOf(tx.db)
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
