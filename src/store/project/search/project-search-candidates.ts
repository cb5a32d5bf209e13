import type { Kysely, SelectQueryBuilder } from "kysely";
import {
  everyTrigramQuery,
  isShort,
  queryTrigrams,
  trigramQuery,
} from "../../../domain/project/search-trigrams.ts";
import { prepared } from "../../prepared.ts";
import type { Schema } from "../../schema.ts";
import { hasGrams, listAsRows, listOf, type RowRange } from "../../sqlite/expressions.ts";
import type { Scope } from "../../store.ts";
import type { ProjectFilter, Projects } from "../project-filter.ts";

/** What leads to projects that a filter may let through, and to all that it does. */
export interface CandidateSource {
  /** One row or more for each of the projects; cheap to count. */
  readonly rows: SelectQueryBuilder<Schema, keyof Schema, object>;
  /** Those projects, found by these rows whatever the planner thinks of it. */
  readonly projects: Projects<object>;
  /** What of the index of texts the rows are: their `rowid` is the project's `search_row`. */
  readonly texts?: Texts;
  /** Each row is of another project, and the index that leads to the projects has what sorts them. */
  readonly isSortable?: boolean;
}

/** Which texts the index is asked for. */
interface Texts {
  readonly query: string;
  readonly first: number;
  readonly last: number;
}

/** So many of the last grams of a text tell nearly as much as all: texts and ids differ most at their ends. */
const END_GRAMS = 4;

/**
 * The lead of the last grams of a search text, which is quick to follow;
 * undefined for a text that asks for no more than those.
 *
 * @param range which rows of the index are the organization's
 */
export function endCandidates(
  db: Kysely<Schema>,
  search: string,
  range: RowRange,
): CandidateSource | undefined {
  const asked = isShort(search) ? [] : queryTrigrams(search);
  return asked.length > END_GRAMS
    ? gramsLead(db, everyTrigramQuery(asked.slice(-END_GRAMS)), range)
    : undefined;
}

/**
 * The lead of a search text that is not empty. To be asked for when that of its
 * end, if it has one, has turned out to have more than `rare` rows.
 *
 * @param rare a gram that no more texts have is rare, and leads without the others
 */
export async function textCandidates(
  db: Kysely<Schema>,
  search: string,
  range: RowRange,
  rare: number,
): Promise<CandidateSource> {
  return gramsLead(db, await tellingQuery(db, search, range, rare), range);
}

function gramsLead(db: Kysely<Schema>, query: string, [first, last]: RowRange): CandidateSource {
  const rows = db.selectFrom("project_search").where(hasGrams(query, [first, last]));
  const projects = rows.crossJoin("project").whereRef("project.search_row", "=", "project_search.rowid");
  return { ...lead(rows, projects), texts: { query, first, last } };
}

/** Asks for the rare ones of the grams before a text's end, or for all of its grams when there are none. */
async function tellingQuery(
  db: Kysely<Schema>,
  search: string,
  [first, last]: RowRange,
  rare: number,
): Promise<string> {
  if (isShort(search)) return trigramQuery(search);
  const asked = queryTrigrams(search);
  const telling: string[] = [];
  // More than `rare` texts have those of the end all together, so none of them is rare.
  for (const gram of asked.slice(0, -END_GRAMS)) {
    const [found] = await countTexts(db, { query: everyTrigramQuery([gram]), first, last, most: rare + 1 });
    const count = found?.count ?? 0;
    if (count === 0) return everyTrigramQuery([gram]);
    if (count <= rare) telling.push(gram);
  }
  return everyTrigramQuery(telling.length > 0 ? telling : asked);
}

type UpTo = Texts & { readonly most: number };

/** How many texts the index names, counted no further than `most`. */
const countTexts = prepared<UpTo, { count: number }>((db, texts) =>
  db.selectFrom(textRows(db, texts)).select((eb) => eb.fn.countAll<number>().as("count")),
);

/** The same, and their rows as a list in JSON. */
const listTexts = prepared<UpTo, { count: number; rows: string }>((db, texts) =>
  db
    .selectFrom(textRows(db, texts))
    .select((eb) => [eb.fn.countAll<number>().as("count"), listOf("texts.row").as("rows")]),
);

function textRows(db: Kysely<Schema>, { query, first, last, most }: UpTo) {
  return db
    .selectFrom("project_search")
    .where(hasGrams(query, [first, last]))
    .select("project_search.rowid as row")
    .limit(most)
    .as("texts");
}

/** The leads of the other fields, which say at once how many rows they have. */
export function fastCandidates(db: Kysely<Schema>, scope: Scope, filter: ProjectFilter): CandidateSource[] {
  const leads: CandidateSource[] = [];
  if (filter.creatorIds.length > 0) {
    const rows = db
      .selectFrom("project")
      .where("project.organization_id", "=", scope.organizationId)
      .where("project.creator_id", "in", filter.creatorIds);
    leads.push(lead(rows, rows));
  }
  if (filter.remoteUris.length > 0) {
    const rows = db
      .selectFrom("project_remote")
      .where("project_remote.organization_id", "=", scope.organizationId)
      .where("project_remote.remote_uri", "in", filter.remoteUris);
    leads.push(leadById(rows));
  }
  if (filter.runnerIds.length > 0) {
    // A runner has one organization, and a caller may name one of another.
    const rows = db
      .selectFrom("project_environment_class")
      .where("project_environment_class.runner_id", "in", (eb) =>
        eb
          .selectFrom("runner")
          .select("runner.id")
          .where("runner.organization_id", "=", scope.organizationId)
          .where("runner.id", "in", filter.runnerIds),
      );
    leads.push(leadById(rows));
  }
  for (const [key, value] of Object.entries(filter.annotations)) {
    const rows = db
      .selectFrom("project_annotation")
      .where("project_annotation.organization_id", "=", scope.organizationId)
      .where("project_annotation.key", "=", key)
      .where("project_annotation.value", "=", value);
    leads.push(leadById(rows));
  }
  return leads;
}

/** Leads to every project of the organization. */
export function noCandidates(db: Kysely<Schema>, scope: Scope): CandidateSource {
  const rows = db.selectFrom("project").where("project.organization_id", "=", scope.organizationId);
  return lead(rows, rows);
}

/** A lead to the same projects, if it has `most` rows at most. The index of texts is read once: that takes the most time. */
export async function isSelective(
  db: Kysely<Schema>,
  lead: CandidateSource,
  most: number,
): Promise<CandidateSource | undefined> {
  if (!lead.texts) return (await isFew(db, lead, most)) ? lead : undefined;
  const [found] = await listTexts(db, { ...lead.texts, most: most + 1 });
  return found && found.count <= most ? rowsLead(db, found.rows) : undefined;
}

/** @param searchRows a list in JSON */
function rowsLead(db: Kysely<Schema>, searchRows: string): CandidateSource {
  const rows = db.selectFrom(listAsRows<number>(searchRows).as("found"));
  const projects = rows.crossJoin("project").whereRef("project.search_row", "=", "found.value");
  return { ...lead(rows, projects), isSortable: true };
}

/** Whether a lead has `most` rows at most. */
export async function isFew(db: Kysely<Schema>, { rows }: CandidateSource, most: number): Promise<boolean> {
  const { count } = await db
    .selectFrom(
      rows
        .select((eb) => eb.lit(1).as("row"))
        .limit(most + 1)
        .as("lead"),
    )
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count <= most;
}

/** Tables that name projects in `project_id`. */
type NamesProject = "project_remote" | "project_environment_class" | "project_annotation";

/** A lead by rows that each name a project. */
function leadById(rows: SelectQueryBuilder<Schema, NamesProject, object>): CandidateSource {
  return lead(rows, rows.crossJoin("project").whereRef("project.id", "=", "project_id"));
}

/** The builder's types tell which tables a query names; that projects are among them is enough here. */
function lead(rows: object, projects: object): CandidateSource {
  return { rows: rows as CandidateSource["rows"], projects: projects as CandidateSource["projects"] };
}
