import type { Kysely } from "kysely";
import { type EnvironmentClass, EnvironmentClassSchema } from "#gen/service/v1/runner_configuration_pb.js";
import type { PagePosition } from "../domain/page.ts";
import { fromBody } from "./json.ts";
import type { Schema } from "./schema.ts";
import type { Scope } from "./store.ts";

/** What a list is narrowed to: fields combine with AND, values inside one with OR; empty means any. */
export interface EnvironmentClassFilter {
  readonly runnerIds: readonly string[];
  readonly runnerKinds: readonly number[];
  /** The values of `enabled` that are asked for; a class must have every one of them. */
  readonly enabled: readonly boolean[];
}

export interface ListedEnvironmentClass {
  readonly environmentClass: EnvironmentClass;
  readonly position: PagePosition;
}

/** Up to `limit` classes behind `after`, by id ascending. */
export async function listEnvironmentClasses(
  db: Kysely<Schema>,
  scope: Scope,
  filter: EnvironmentClassFilter,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedEnvironmentClass[]> {
  let query = db
    .selectFrom("environment_class")
    .select(["environment_class.id", "environment_class.body"])
    .where("environment_class.organization_id", "=", scope.organizationId);
  if (after) query = query.where("environment_class.id", ">", after.id);
  if (filter.runnerIds.length > 0) query = query.where("environment_class.runner_id", "in", filter.runnerIds);
  for (const enabled of filter.enabled) {
    query = query.where("environment_class.enabled", "=", enabled ? 1 : 0);
  }
  if (filter.runnerKinds.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("runner")
          .select("runner.id")
          .whereRef("runner.id", "=", "environment_class.runner_id")
          .where("runner.kind", "in", filter.runnerKinds),
      ),
    );
  }
  const rows = await query.orderBy("environment_class.id").limit(limit).execute();
  return rows.map(({ id, body }) => ({
    environmentClass: fromBody(EnvironmentClassSchema, body),
    position: { key: 0, id },
  }));
}
