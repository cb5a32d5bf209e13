import type { SelectQueryBuilder } from "kysely";
import { type Environment, EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { octets } from "../expressions.ts";
import { fromBody } from "../json.ts";
import { builderOf } from "../query-builder.ts";
import type { Schema } from "../schema.ts";
import type { Reader, Scope } from "../store.ts";

/** An environment that is due to be archived or deleted, with the bytes of its body, which may be megabytes. */
export interface DueEnvironment {
  readonly id: string;
  readonly bytes: number;
}

/** Returns the environments that {@link findArchivable} would return. */
export function findArchivableIds(
  db: Reader,
  scope: Scope,
  stoppedUntil: number,
  limit: number,
): Promise<DueEnvironment[]> {
  return archivable(db, scope, stoppedUntil, limit)
    .select(["id", octets("environment.body").as("bytes")])
    .execute();
}

/** Returns the environments that {@link findDeletable} would return. */
export function findDeletableIds(
  db: Reader,
  scope: Scope,
  archivedUntil: number,
  limit: number,
): Promise<DueEnvironment[]> {
  return deletable(db, scope, archivedUntil, limit)
    .select(["id", octets("environment.body").as("bytes")])
    .execute();
}

/**
 * Returns up to `limit` environments of the scope that have been stopped since `stoppedUntil` or
 * longer and are not archived.
 */
export async function findArchivable(
  db: Reader,
  scope: Scope,
  stoppedUntil: number,
  limit: number,
): Promise<Environment[]> {
  return bodies(archivable(db, scope, stoppedUntil, limit).select("body"));
}

const archivable = (db: Reader, { organizationId }: Scope, stoppedUntil: number, limit: number) =>
  builderOf(db)
    .selectFrom("environment")
    .where("organization_id", "=", organizationId)
    .where("stopped_at", "<=", stoppedUntil)
    .where("archived_at", "is", null)
    .orderBy("stopped_at")
    .limit(limit);

/**
 * Returns up to `limit` environments of the scope that were archived by `archivedUntil` and whose deletion is not yet
 * requested.
 */
export async function findDeletable(
  db: Reader,
  scope: Scope,
  archivedUntil: number,
  limit: number,
): Promise<Environment[]> {
  return bodies(deletable(db, scope, archivedUntil, limit).select("body"));
}

const deletable = (db: Reader, { organizationId }: Scope, archivedUntil: number, limit: number) =>
  builderOf(db)
    .selectFrom("environment")
    .where("organization_id", "=", organizationId)
    .where("archived_at", "<=", archivedUntil)
    .where("desired_phase", "!=", EnvironmentPhase.DELETED)
    .orderBy("archived_at")
    .limit(limit);

/** An environment of any organization, for jobs. */
export interface ScopedEnvironment extends Scope {
  readonly environment: Environment;
}

/**
 * Returns up to `limit` environments of all organizations that should run although their lifetime ended by `until`, by
 * id ascending after `afterId`.
 * @param organizationId of the environments; default any
 */
export async function findPastLifetime(
  db: Reader,
  until: number,
  afterId: string,
  limit: number,
  organizationId?: string,
): Promise<ScopedEnvironment[]> {
  const rows = await builderOf(db)
    .selectFrom("environment")
    .select(["organization_id", "body"])
    .where("lockdown_at", "<=", until)
    .where("desired_phase", "=", EnvironmentPhase.RUNNING)
    .where("id", ">", afterId)
    .$if(organizationId !== undefined, (environments) =>
      environments.where("organization_id", "=", organizationId as string),
    )
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ organization_id, body }) => ({
    organizationId: organization_id,
    environment: fromBody(EnvironmentSchema, body),
  }));
}

async function bodies(
  query: SelectQueryBuilder<Schema, "environment", { body: string }>,
): Promise<Environment[]> {
  return (await query.execute()).map(({ body }) => fromBody(EnvironmentSchema, body));
}
