import type { Kysely } from "kysely";
import { prepared } from "./prepared.ts";
import type { Schema } from "./schema.ts";
import type { Scope } from "./store.ts";

const selectServiceAccount = prepared<{ id: string; organizationId: string }, { id: string }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("service_account")
      .select("id")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

export async function serviceAccountExists(db: Kysely<Schema>, scope: Scope, id: string): Promise<boolean> {
  return (await selectServiceAccount(db, { id, organizationId: scope.organizationId })).length > 0;
}
