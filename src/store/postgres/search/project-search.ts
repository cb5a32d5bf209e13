import { type SqlBool, sql } from "kysely";
import { applyFilter, type Projects } from "../../project/project-filter.ts";
import {
  directions,
  type FoundProject,
  type FoundProjects,
  PROJECT_COLUMNS,
  type ProjectPage,
} from "../../project/project-page.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";
import { gramQuery } from "./project-grams.ts";

/** The limits by which a search chooses its plan, in numbers of projects; each takes a few microseconds. */
const BOUNDS = {
  /** Tested in page order before the index is used: a common text fills the page this way. */
  walk: 2_000,
  /** Maximum number of candidates from the index, all of which are tested and sorted. */
  few: 3_000,
  /** Tested in page order when there are more candidates than that. */
  farWalk: 10_000,
  /** Maximum number of candidates from the index when that does not fill the page either. */
  many: 20_000,
} as const;

type Bounds = Readonly<Record<keyof typeof BOUNDS, number>>;

/**
 * Finds the projects that pass a filter. It first tests projects in page order, which fills the page where many match,
 * and covers the whole of a small organization. Otherwise an index leads to the projects whose texts contain the
 * pieces of the search. Each row found is tested, so that the result is exact.
 * @param bounds for tests
 */
export async function findProjects(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  bounds: Bounds = BOUNDS,
): Promise<FoundProjects> {
  const { search } = page.filter;
  // The text holds one value per line; a search across lines would find texts that no value contains.
  if (search.includes("\n")) return { rows: [], count: page.countLimit && 0 };
  let rows = await walk(db, scope, page, bounds.walk);
  const query = search === "" ? undefined : gramQuery(scope.organizationId, search);
  if (!rows && query) {
    const few = await sortFew(db, scope, page, query, bounds.few);
    if (few) return few;
    rows = await walk(db, scope, page, bounds.farWalk);
    const many = rows ? undefined : await sortFew(db, scope, page, query, bounds.many);
    if (many) return many;
  }
  const passing = applyFilter(builderOf(db).selectFrom("project"), scope, page.filter);
  rows ??= await ordered(passing, page).select(PROJECT_COLUMNS).limit(page.limit).execute();
  if (page.countLimit === undefined) return { rows, count: undefined };
  const { count } = await builderOf(db)
    .selectFrom(passing.select("project.id").limit(page.countLimit).as("found"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { rows, count };
}

/**
 * Tests the next projects of the organization in page order.
 * @returns the page; undefined when these projects neither fill it nor are all that exist
 */
async function walk(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  most: number,
): Promise<FoundProject[] | undefined> {
  const found: FoundProject[] = [];
  for (const part of parts(page)) {
    const own = part(ofOrganization(db, scope, page));
    const next = own.selectAll("project").limit(most).as("project");
    const tested = builderOf(db).selectFrom(next) as unknown as Projects<object>;
    const rows = await part(applyFilter(tested, scope, page.filter))
      .select(PROJECT_COLUMNS)
      .limit(page.limit - found.length)
      .execute();
    found.push(...rows);
    if (found.length === page.limit) return found;
    const more = await own.select("project.id").offset(most).limit(1).execute();
    if (more.length > 0) return undefined;
  }
  return found;
}

/**
 * Returns the projects of an organization, for one of the ranges of the order. Sorted by id alone, the planner could
 * use the index of all ids and skip the rows of other organizations; sorting by organization first prevents that.
 */
function ofOrganization(db: Reader, { organizationId }: Scope, { order }: ProjectPage): Projects<object> {
  const all = builderOf(db).selectFrom("project");
  if (order.field !== "id") return all.where("project.organization_id", "=", organizationId);
  return all
    .where("project.organization_id", ">=", organizationId)
    .where("project.organization_id", "<=", organizationId)
    .orderBy("project.organization_id", order.direction);
}

/**
 * Returns the page by the index of texts; undefined when that leads to too many. One statement tests and sorts, so
 * that only the ids of the page leave the database.
 * @param query the result of gramQuery
 */
async function sortFew(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  query: string,
  most: number,
): Promise<FoundProjects | undefined> {
  const candidates = builderOf(db)
    .selectFrom("project")
    .where(sql<SqlBool>`project_grams(project.organization_id, project.search_text) @@ ${query}::tsquery`)
    .select(TESTED_COLUMNS)
    .limit(most + 1);
  const {
    candidates: led,
    passing,
    ids,
  } = await builderOf(db)
    .with(
      (cte) => cte("candidate").materialized(),
      () => candidates,
    )
    .with("passing", (cte) => {
      const tested = cte.selectFrom("candidate as project") as unknown as Projects<object>;
      return applyFilter(tested, scope, page.filter).select(["project.id", "project.popularity"]);
    })
    .selectNoFrom((eb) => {
      const found = eb.selectFrom("passing as project") as unknown as Projects<object>;
      const listed = ordered(found, page).select("project.id").limit(page.limit).as("project");
      const count = (table: "candidate" | "passing") =>
        eb.selectFrom(table).select((of) => of.fn.countAll<number>().as("count"));
      return [
        count("candidate").as("candidates"),
        count("passing").as("passing"),
        eb.selectFrom(listed).select(sql<string>`json_agg(id)::text`.as("ids")).as("ids"),
      ];
    })
    .executeTakeFirstOrThrow();
  if ((led ?? 0) > most) return undefined;
  const rows = await ordered(
    builderOf(db)
      .selectFrom("project")
      .where("project.organization_id", "=", scope.organizationId)
      .where(sql<SqlBool>`project.id = any(${sql.val(JSON.parse(ids ?? "[]"))}::text[])`),
    page,
  )
    .select(PROJECT_COLUMNS)
    .execute();
  return { rows, count: page.countLimit && Math.min(passing ?? 0, page.countLimit) };
}

/** The columns of a project that a filter tests and a page is sorted by. */
const TESTED_COLUMNS = [
  "project.id",
  "project.organization_id",
  "project.creator_id",
  "project.popularity",
  "project.search_text",
] as const;

type Part = <O>(all: Projects<O>) => Projects<O>;

/** Returns the ranges of the order after the previous page, each of which an index yields in order. */
function parts({ after, order }: ProjectPage): Part[] {
  const ways = directions(order);
  const byId: Part = (all) => all.orderBy("project.id", ways.id.direction);
  if (order.field === "id")
    return [(all) => byId(after ? all.where("project.id", ways.id.behind, after.id) : all)];
  const byPopularity: Part = (all) => byId(all.orderBy("project.popularity", ways.popularity.direction));
  if (!after) return [byPopularity];
  return [
    (all) =>
      byId(all.where("project.popularity", "=", after.key).where("project.id", ways.id.behind, after.id)),
    (all) => byPopularity(all.where("project.popularity", ways.popularity.behind, after.key)),
  ];
}

function ordered<O>(all: Projects<O>, { after, order }: ProjectPage): Projects<O> {
  const ways = directions(order);
  if (order.field === "id") {
    const rest = after ? all.where("project.id", ways.id.behind, after.id) : all;
    return rest.orderBy("project.id", ways.id.direction);
  }
  const rest = after
    ? all.where((eb) =>
        eb.or([
          eb("project.popularity", ways.popularity.behind, after.key),
          eb.and([eb("project.popularity", "=", after.key), eb("project.id", ways.id.behind, after.id)]),
        ]),
      )
    : all;
  return rest
    .orderBy("project.popularity", ways.popularity.direction)
    .orderBy("project.id", ways.id.direction);
}
