import type { SelectQueryBuilder } from "kysely";
import { prepared } from "../../prepared.ts";
import type { ProjectFilter, Projects } from "../../project/project-filter.ts";
import { builderOf } from "../../query-builder.ts";
import type { Schema } from "../../schema.ts";
import type { Reader, Scope } from "../../store.ts";
import { listAsRows, listOf } from "./json-lists.ts";
import { hasTrigrams, type RowRange } from "./project-texts.ts";
import { searchTables } from "./search-tables.ts";
import { everyTrigramQuery, isShort, queryTrigrams, trigramQuery } from "./trigrams.ts";

/**
 * A source of candidates: rows that lead to all projects that a filter accepts, and possibly to
 * others.
 */
export interface CandidateSource {
  /** At least one row for each of the projects; cheap to count. */
  readonly rows: SelectQueryBuilder<Schema, keyof Schema, object>;
  /** The projects, joined with these rows in an order that the planner cannot change. */
  readonly projects: Projects<object>;
  /**
   * Query of the text index, when the rows are its rows: their `rowid` is the project's
   * `search_row`.
   */
  readonly texts?: Texts;
  /**
   * True when each row is of another project, and the index that leads to the projects contains the
   * sort columns.
   */
  readonly isSortable?: boolean;
}

/** A query of the text index. */
interface Texts {
  readonly query: string;
  readonly first: number;
  readonly last: number;
}

/**
 * Number of trigrams at the end of a text that are almost as selective as all: texts and ids differ
 * most at their ends.
 */
const END_TRIGRAMS = 4;

/**
 * Returns the candidates by the last trigrams of a search text, which are quick to find; undefined
 * for a text that has no more than those.
 * @param range the organization's rows of the index
 */
export function endCandidates(db: Reader, search: string, range: RowRange): CandidateSource | undefined {
  const asked = isShort(search) ? [] : queryTrigrams(search);
  return asked.length > END_TRIGRAMS
    ? trigramCandidates(db, everyTrigramQuery(asked.slice(-END_TRIGRAMS)), range)
    : undefined;
}

/**
 * Returns the candidates by a search text that is not empty. Used when those by the end of the
 * text, if any, have turned out to be more than `rare`.
 * @param rare maximum number of texts with a trigram that is rare, and sufficient without the
 * others
 */
export async function textCandidates(
  db: Reader,
  search: string,
  range: RowRange,
  rare: number,
): Promise<CandidateSource> {
  return trigramCandidates(db, await selectiveQuery(db, search, range, rare), range);
}

function trigramCandidates(db: Reader, query: string, [first, last]: RowRange): CandidateSource {
  const rows = searchTables(db)
    .selectFrom("project_search")
    .where(hasTrigrams(query, [first, last]));
  const projects = rows.crossJoin("project").whereRef("project.search_row", "=", "project_search.rowid");
  return { ...lead(rows, projects), texts: { query, first, last } };
}

/**
 * Returns the query for the rare trigrams before a text's end, or for all of its trigrams when none
 * is rare.
 */
async function selectiveQuery(
  db: Reader,
  search: string,
  [first, last]: RowRange,
  rare: number,
): Promise<string> {
  if (isShort(search)) return trigramQuery(search);
  const asked = queryTrigrams(search);
  const telling: string[] = [];
  // More than `rare` texts have all trigrams of the end, so none of those is rare.
  for (const gram of asked.slice(0, -END_TRIGRAMS)) {
    const [found] = await countTexts(db, { query: everyTrigramQuery([gram]), first, last, most: rare + 1 });
    const count = found?.count ?? 0;
    if (count === 0) return everyTrigramQuery([gram]);
    if (count <= rare) telling.push(gram);
  }
  return everyTrigramQuery(telling.length > 0 ? telling : asked);
}

type UpTo = Texts & { readonly most: number };

/** Counts the texts that the index returns, up to `most`. */
const countTexts = prepared<UpTo, { count: number }>((db, texts) =>
  db.selectFrom(textRows(db, texts)).select((eb) => eb.fn.countAll<number>().as("count")),
);

/** Counts them likewise, and returns their rows as a list in JSON. */
const listTexts = prepared<UpTo, { count: number; rows: string }>((db, texts) =>
  db
    .selectFrom(textRows(db, texts))
    .select((eb) => [eb.fn.countAll<number>().as("count"), listOf("texts.row").as("rows")]),
);

function textRows(db: Reader, { query, first, last, most }: UpTo) {
  return searchTables(db)
    .selectFrom("project_search")
    .where(hasTrigrams(query, [first, last]))
    .select("project_search.rowid as row")
    .limit(most)
    .as("texts");
}

/** Returns the candidates by the other fields, whose number of rows is known at once. */
export function indexedCandidates(db: Reader, scope: Scope, filter: ProjectFilter): CandidateSource[] {
  const leads: CandidateSource[] = [];
  if (filter.creatorIds.length > 0) {
    const rows = builderOf(db)
      .selectFrom("project")
      .where("project.organization_id", "=", scope.organizationId)
      .where("project.creator_id", "in", filter.creatorIds);
    leads.push(lead(rows, rows));
  }
  if (filter.remoteUris.length > 0) {
    const rows = builderOf(db)
      .selectFrom("project_remote")
      .where("project_remote.organization_id", "=", scope.organizationId)
      .where("project_remote.remote_uri", "in", filter.remoteUris);
    leads.push(candidatesById(rows));
  }
  if (filter.runnerIds.length > 0) {
    // A runner has one organization, and a caller may name one of another.
    const rows = builderOf(db)
      .selectFrom("project_environment_class")
      .where("project_environment_class.runner_id", "in", (eb) =>
        eb
          .selectFrom("runner")
          .select("runner.id")
          .where("runner.organization_id", "=", scope.organizationId)
          .where("runner.id", "in", filter.runnerIds),
      );
    leads.push(candidatesById(rows));
  }
  for (const [key, value] of Object.entries(filter.annotations)) {
    const rows = builderOf(db)
      .selectFrom("project_annotation")
      .where("project_annotation.organization_id", "=", scope.organizationId)
      .where("project_annotation.key", "=", key)
      .where("project_annotation.value", "=", value);
    leads.push(candidatesById(rows));
  }
  return leads;
}

/** Returns every project of the organization as a candidate. */
export function allCandidates(db: Reader, scope: Scope): CandidateSource {
  const rows = builderOf(db)
    .selectFrom("project")
    .where("project.organization_id", "=", scope.organizationId);
  return lead(rows, rows);
}

/**
 * Returns a source of the same candidates, if it has at most `most` rows. The text index is read
 * only once, since that takes the most time.
 */
export async function isSelective(
  db: Reader,
  candidateSource: CandidateSource,
  most: number,
): Promise<CandidateSource | undefined> {
  if (!candidateSource.texts)
    return (await hasAtMost(db, candidateSource, most)) ? candidateSource : undefined;
  const [found] = await listTexts(db, { ...candidateSource.texts, most: most + 1 });
  return found && found.count <= most ? rowCandidates(db, found.rows) : undefined;
}

/**
 * Returns the candidates by rows of the text index.
 * @param searchRows a list in JSON
 */
function rowCandidates(db: Reader, searchRows: string): CandidateSource {
  const rows = builderOf(db).selectFrom(listAsRows<number>(searchRows).as("found"));
  const projects = rows.crossJoin("project").whereRef("project.search_row", "=", "found.value");
  return { ...lead(rows, projects), isSortable: true };
}

/** Returns whether a source has at most `most` rows. */
export async function hasAtMost(db: Reader, { rows }: CandidateSource, most: number): Promise<boolean> {
  const { count } = await builderOf(db)
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
type ProjectReferenceTable = "project_remote" | "project_environment_class" | "project_annotation";

/** Returns the candidates by rows that each name a project. */
function candidatesById(rows: SelectQueryBuilder<Schema, ProjectReferenceTable, object>): CandidateSource {
  return lead(rows, rows.crossJoin("project").whereRef("project.id", "=", "project_id"));
}

/**
 * Builds a source. The builder's types tell which tables a query names; it is enough here that
 * projects are among them.
 */
function lead(rows: object, projects: object): CandidateSource {
  return { rows: rows as CandidateSource["rows"], projects: projects as CandidateSource["projects"] };
}
