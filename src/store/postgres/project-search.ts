import { type SqlBool, sql } from "kysely";
import { applyFilter, type Projects } from "../project/project-filter.ts";
import {
  directions,
  type FoundProject,
  type FoundProjects,
  PROJECT_COLUMNS,
  type ProjectPage,
} from "../project/project-page.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/** The limits by which a search chooses its way. */
const BOUNDS = {
  /** Number of projects that are tested in the order of the page before an index is asked: a common text fills it. */
  walk: 2_000,
  /** Maximum number of matches that the index of trigrams leads to and that are then sorted. */
  few: 3_000,
} as const;

type Bounds = Readonly<Record<keyof typeof BOUNDS, number>>;

/**
 * Finds the projects that pass a filter. It tests the first projects in the order of the page, which fill it where
 * many match, and are all of a small organization. For the others the engine's index of trigrams leads to texts of at
 * least three characters. Each row found is tested, so that the result is exact.
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
  const passing = applyFilter(matching(db, search), scope, page.filter);
  const rows =
    (await walk(db, scope, page, bounds.walk)) ??
    (search === "" ? undefined : await sortFew(db, scope, page, bounds.few)) ??
    (await ordered(passing, page).select(PROJECT_COLUMNS).limit(page.limit).execute());
  if (page.countLimit === undefined) return { rows, count: undefined };
  const { count } = await builderOf(db)
    .selectFrom(passing.select("project.id").limit(page.countLimit).as("found"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { rows, count };
}

/**
 * Tests the next projects of the organization in the order of the page.
 * @returns the page; undefined when these projects neither fill it nor are all that there are
 */
async function walk(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  most: number,
): Promise<FoundProject[] | undefined> {
  const found: FoundProject[] = [];
  for (const part of parts(page)) {
    const own = part(
      builderOf(db).selectFrom("project").where("project.organization_id", "=", scope.organizationId),
    );
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

/** Returns the page by the index of trigrams; undefined when that leads to many. */
async function sortFew(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  most: number,
): Promise<FoundProject[] | undefined> {
  const few = applyFilter(matching(db, page.filter.search), scope, page.filter)
    .select(["project.id", "project.popularity"])
    .limit(most + 1);
  const found = await few.execute();
  if (found.length > most) return undefined;
  const ids = found.map(({ id }) => id);
  const own = builderOf(db)
    .selectFrom("project")
    .where("project.organization_id", "=", scope.organizationId)
    .where(sql<SqlBool>`project.id = any(${sql.val(ids)}::text[])`);
  return ordered(own, page).select(PROJECT_COLUMNS).limit(page.limit).execute();
}

/** Returns all projects whose texts the index of trigrams leads to; true for every text that contains the other. */
function matching(db: Reader, search: string): Projects<object> {
  const all = builderOf(db).selectFrom("project");
  if (search === "") return all;
  return all.where(
    sql<SqlBool>`project.search_text like ${`%${search.replace(/[\\%_]/g, "\\$&")}%`}`,
  ) as Projects<object>;
}

type Part = <O>(all: Projects<O>) => Projects<O>;

/** Returns the ranges of the order that follow the page before, each of which an index yields in order. */
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
