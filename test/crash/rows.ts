import { join } from "node:path";
import Database from "better-sqlite3";
import { trigramQuery } from "../../src/store/sqlite/search/trigrams.ts";
import { canonical } from "../harness/project-pages.ts";
import { storageProblems } from "../harness/stored-bytes.ts";

/** Returns the inconsistencies in the rows of a data folder, in words; empty when there are none. */
export function rowProblems(dataDir: string): string[] {
  return reading(dataDir, (db) => [
    ...all(db, "pragma integrity_check")
      .filter((row) => canonical(row) !== '{"integrity_check":"ok"}')
      .map(canonical),
    ...all(db, "pragma foreign_key_check").map((row) => `foreign key: ${canonical(row)}`),
    ...all(db, GAPS).map((row) => `numbers of the record: ${canonical(row)}`),
    ...all(db, UNPAIRED).map((row) => `event and audit row differ: ${canonical(row)}`),
    ...all(db, UNRECORDED).map((row) => `row without its record: ${canonical(row)}`),
    ...all(db, STALE_INDEX).map((row) => `index and body differ: ${canonical(row)}`),
    ...storageProblems(db),
    ...unsearchable(db).map((id) => `not in the index of texts: ${id}`),
  ]);
}

/** Technical descriptions by project. */
export function readDescriptions(dataDir: string): Map<string, string> {
  return reading(dataDir, (db) => {
    const rows = all(db, "select id, technical_description from project") as {
      id: string;
      technical_description: string;
    }[];
    return new Map(rows.map(({ id, technical_description }) => [id, technical_description]));
  });
}

/** Returns the number of the newest event of all organizations. */
export function countEvents(dataDir: string): number {
  return reading(
    dataDir,
    (db) => (all(db, "select count(*) as count from event") as { count: number }[])[0]?.count ?? 0,
  );
}

/**
 * Returns organizations whose sequence numbers are not 1, 2, 3 ... up to their counter, in the
 * events or in the audit log.
 */
const GAPS = `
select organization.id, organization.sequence,
  (select count(*) || ' from ' || min(sequence) || ' to ' || max(sequence)
    from event where event.organization_id = organization.id) as events,
  (select count(*) || ' from ' || min(sequence) || ' to ' || max(sequence)
    from audit_log where audit_log.organization_id = organization.id) as audit
from organization
where events <> sequence || ' from 1 to ' || sequence or audit <> events or events is null or audit is null`;

const UNPAIRED = `
select event.organization_id, event.sequence from event
left join audit_log using (organization_id, sequence)
where audit_log.id is null or audit_log.subject_id <> event.resource_id or audit_log.subject_type <> event.resource_type`;

/** Checks that each existing row was created once, and that each created row exists or was deleted once. */
const UNRECORDED = `
with resource as (
  select 'project' as type, id from project union all select 'environment', id from environment
), told as (
  select resource_type as type, resource_id as id,
    sum(kind = 'created') as created, sum(kind = 'deleted') as deleted
  from event where resource_type in ('project', 'environment') group by 1, 2
)
select told.*, resource.id is not null as present
from told left join resource using (type, id)
where created <> 1 or deleted <> (resource.id is null)
union all
select type, id, 0, 0, 1 from resource where id not in (select id from told)`;

const STALE_INDEX = `
select project.id from project
where desired_phase <> case body ->> '$.desiredPhase' when 'PROJECT_PHASE_ACTIVE' then 1 else 2 end
  or body ->> '$.initializer.specs[0].git.remoteUri' is not (
    select group_concat(remote_uri) from project_remote
    where project_id = project.id and organization_id = project.organization_id)
  or (select count(*) from json_each(body, '$.metadata.annotations')) <> (
    select count(*) from project_annotation
    where project_id = project.id and organization_id = project.organization_id)
  or used_by ->> '$.totalSubjects' <> (select count(*) from project_use where project_id = project.id)`;

/** Returns the projects that the index does not find by their id, which is part of each one's text. */
function unsearchable(db: Database.Database): string[] {
  const leads = db.prepare("select 1 from project_search where project_search match ? and rowid = ?");
  const rows = all(db, "select id, search_row from project") as { id: string; search_row: number | null }[];
  return rows
    .filter(({ id, search_row }) => search_row === null || !leads.get(trigramQuery(id), search_row))
    .map(({ id }) => id);
}

function all(db: Database.Database, sql: string): unknown[] {
  return db.prepare(sql).all();
}

/** A killed server leaves its last commits in the write-ahead log; opening the file recovers them. */
function reading<T>(dataDir: string, read: (db: Database.Database) => T): T {
  const db = new Database(join(dataDir, "chartroom.db"), { readonly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}
