import { trigramQuery } from "../../src/store/sqlite/search/trigrams.ts";
import { canonical } from "../harness/project-pages.ts";
import { countOf, type RawData, withRawData } from "../harness/raw-data.ts";
import { storageProblems } from "../harness/stored-bytes.ts";

/**
 * Returns the inconsistencies in the rows of a data folder, in words; empty when there are none. Jobs of a server may
 * write meanwhile, so that all of it is read as it was at one moment.
 */
export function rowProblems(dataDir: string): Promise<string[]> {
  return withRawData(dataDir, async (raw) => {
    await raw.beginSnapshot();
    return problemsOf(raw);
  });
}

async function problemsOf(raw: RawData): Promise<string[]> {
  return [
    ...(raw.isPostgres ? [] : await fileProblems(raw)),
    ...(await raw.rows(GAPS)).map((row) => `numbers of the record: ${canonical(row)}`),
    ...(await raw.rows(UNPAIRED)).map((row) => `event and audit row differ: ${canonical(row)}`),
    ...(await raw.rows(UNRECORDED)).map((row) => `row without its record: ${canonical(row)}`),
    ...(await staleIndexes(raw)).map((id) => `index and body differ: ${id}`),
    ...(await storageProblems(raw)),
    ...(await unsearchable(raw)).map((id) => `not in the index of texts: ${id}`),
  ];
}

/** Technical descriptions by project. */
export async function readDescriptions(dataDir: string): Promise<Map<string, string>> {
  const rows = await withRawData(dataDir, (raw) =>
    raw.rows<{ id: string; technical_description: string }>("select id, technical_description from project"),
  );
  return new Map(rows.map(({ id, technical_description }) => [id, technical_description]));
}

/** Returns the number of the newest event of all organizations. */
export function countEvents(dataDir: string): Promise<number> {
  return withRawData(dataDir, (raw) => countOf(raw, "event"));
}

/** What the engine itself says of its file; PostgreSQL has no such question, and holds references by itself. */
async function fileProblems(raw: RawData): Promise<string[]> {
  return [
    ...(await raw.rows("pragma integrity_check"))
      .filter((row) => canonical(row) !== '{"integrity_check":"ok"}')
      .map(canonical),
    ...(await raw.rows("pragma foreign_key_check")).map((row) => `foreign key: ${canonical(row)}`),
  ];
}

/**
 * Returns organizations whose audit rows are not numbered 1, 2, 3 ... up to their counter, or some of whose changes
 * have no event. Secrets that are handed out are no change.
 */
const GAPS = `
select * from (
  select organization.id, organization.sequence,
    (select count(*) || ' from ' || min(sequence) || ' to ' || max(sequence)
      from audit_log where audit_log.organization_id = organization.id) as audit,
    (select count(*) from audit_log
      left join event on event.organization_id = audit_log.organization_id and event.sequence = audit_log.sequence
      where audit_log.organization_id = organization.id and event.sequence is null
        and audit_log.operation <> 'secret/handed_out') as without_event
  from organization
) as numbers
where audit is null or audit <> sequence || ' from 1 to ' || sequence or without_event > 0`;

const UNPAIRED = `
select event.organization_id, event.sequence from event
left join audit_log on audit_log.organization_id = event.organization_id and audit_log.sequence = event.sequence
where audit_log.id is null or audit_log.subject_id <> event.resource_id or audit_log.subject_type <> event.resource_type`;

/** Checks that each existing row was created once, and that each created row exists or was deleted once. */
const UNRECORDED = `
with resource as (
  select 'project' as type, id from project union all select 'environment', id from environment
), recorded as (
  select resource_type as type, resource_id as id,
    count(case when kind = 'created' then 1 end) as created, count(case when kind = 'deleted' then 1 end) as deleted
  from event where resource_type in ('project', 'environment') group by 1, 2
), compared as (
  select recorded.*, case when resource.id is null then 0 else 1 end as present
  from recorded left join resource on resource.type = recorded.type and resource.id = recorded.id
)
select * from compared where created <> 1 or deleted <> 1 - present
union all
select type, id, 0, 0, 1 from resource where id not in (select id from recorded)`;

interface StoredProject {
  readonly id: string;
  readonly body: string;
  readonly used_by: string;
  readonly desired_phase: number;
  readonly remotes: number;
  readonly remote_uri: string | null;
  readonly annotations: number;
  readonly uses: number;
}

const PROJECTS = `
select id, body, used_by, desired_phase,
  (select count(*) from project_remote where project_id = project.id and organization_id = project.organization_id)
    as remotes,
  (select min(remote_uri) from project_remote where project_id = project.id and organization_id = project.organization_id)
    as remote_uri,
  (select count(*) from project_annotation where project_id = project.id and organization_id = project.organization_id)
    as annotations,
  (select count(*) from project_use where project_id = project.id) as uses
from project`;

/** Returns the projects whose rows in other tables do not say what their bodies do; they have one remote at most. */
async function staleIndexes(raw: RawData): Promise<string[]> {
  const isFresh = (row: StoredProject) => {
    const { desiredPhase, initializer, metadata } = JSON.parse(row.body);
    const remote = initializer?.specs?.[0]?.git?.remoteUri ?? null;
    return (
      row.desired_phase === (desiredPhase === "PROJECT_PHASE_ACTIVE" ? 1 : 2) &&
      row.remotes === (remote === null ? 0 : 1) &&
      row.remote_uri === remote &&
      row.annotations === Object.keys(metadata?.annotations ?? {}).length &&
      row.uses === JSON.parse(row.used_by).totalSubjects
    );
  };
  return (await raw.rows<StoredProject>(PROJECTS)).filter((row) => !isFresh(row)).map(({ id }) => id);
}

/** Returns the projects that the index does not find by their id, which is part of each one's text. */
async function unsearchable(raw: RawData): Promise<string[]> {
  if (raw.isPostgres) {
    const rows = await raw.rows<{ id: string }>(
      "select id from project where position(id in search_text) = 0",
    );
    return rows.map(({ id }) => id);
  }
  const rows = await raw.rows<{ id: string; search_row: number | null }>(
    "select id, search_row from project",
  );
  const lost: string[] = [];
  for (const { id, search_row } of rows) {
    const leads = "select 1 from project_search where project_search match ? and rowid = ?";
    if (search_row === null || (await raw.rows(leads, trigramQuery(id), search_row)).length === 0)
      lost.push(id);
  }
  return lost;
}
