import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";
import type { StoredWork } from "./work.ts";

/**
 * Returns the work whose lease a runner holds, including expired leases that were not ended yet.
 */
export async function findWorkLeasedBy(db: Reader, scope: Scope, runnerId: string): Promise<StoredWork[]> {
  return builderOf(db)
    .selectFrom("work")
    .selectAll()
    .where("leased_by", "=", runnerId)
    .where("organization_id", "=", scope.organizationId)
    .orderBy("id")
    .$castTo<StoredWork>()
    .execute();
}

/** Returns the work that only a runner can do: bound to it, or for one of its classes. */
export async function findWorkBoundTo(
  db: Reader,
  scope: Scope,
  runnerId: string,
  classIds: readonly string[],
): Promise<StoredWork[]> {
  return builderOf(db)
    .selectFrom("work")
    .selectAll()
    .where("organization_id", "=", scope.organizationId)
    .where((eb) =>
      eb.or([
        eb("runner_id", "=", runnerId),
        ...(classIds.length > 0 ? [eb("environment_class_id", "in", classIds)] : []),
      ]),
    )
    .orderBy("id")
    .$castTo<StoredWork>()
    .execute();
}
