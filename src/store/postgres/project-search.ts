import { type SqlBool, sql } from "kysely";
import { applyFilter, type Projects } from "../project/project-filter.ts";
import {
  directions,
  type FoundProjects,
  PROJECT_COLUMNS,
  type ProjectPage,
} from "../project/project-page.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, Scope } from "../store.ts";

/**
 * Finds the projects that pass a filter. The engine's index of trigrams leads to texts of at least three characters;
 * each row found is tested, so that the result is exact.
 */
export async function findProjects(db: Reader, scope: Scope, page: ProjectPage): Promise<FoundProjects> {
  const { search } = page.filter;
  // The text holds one value per line; a search across lines would find texts that no value contains.
  if (search.includes("\n")) return { rows: [], count: page.countLimit && 0 };
  const all = builderOf(db).selectFrom("project");
  const passing = applyFilter(search === "" ? all : all.where(likely(search)), scope, page.filter);
  const rows = await ordered(passing, page).select(PROJECT_COLUMNS).limit(page.limit).execute();
  if (page.countLimit === undefined) return { rows, count: undefined };
  const { count } = await builderOf(db)
    .selectFrom(passing.select("project.id").limit(page.countLimit).as("found"))
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { rows, count };
}

/** Returns the condition that the index of trigrams serves; it is true for every text that contains the other. */
function likely(search: string) {
  return sql<SqlBool>`project.search_text like ${`%${search.replace(/[\\%_]/g, "\\$&")}%`}`;
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
