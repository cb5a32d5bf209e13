import { unindexed } from "../../expressions.ts";
import { applyFilter, type Projects } from "../../project/project-filter.ts";
import {
  directions,
  type FoundProject,
  type FoundProjects,
  PROJECT_COLUMNS,
  type ProjectOrder,
  type ProjectPage,
} from "../../project/project-page.ts";
import type { ProjectTable } from "../../project/project-schema.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope } from "../../store.ts";
import { listAsRows } from "./json-lists.ts";
import type { CandidateSource } from "./project-candidates.ts";

/**
 * Tests all candidates of a source, which also counts them; undefined when more than `most` pass.
 * Where they can be sorted beforehand and no count is needed, it stops when the page is full.
 */
export async function collect(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  { projects, isSortable }: CandidateSource,
  most: number,
): Promise<FoundProjects | undefined> {
  if (isSortable && page.countLimit === undefined) {
    return { rows: await firstMatching(db, scope, page, projects), count: undefined };
  }
  const passing = await applyFilter(projects, scope, page.filter)
    .select(["project.id", "project.popularity"])
    .limit(most + 1)
    .execute();
  if (passing.length > most) return undefined;
  // A source may name one project several times.
  const found = [...new Map(passing.map((row) => [row.id, row])).values()];
  const compare = comparison(page.order);
  const after = page.after && { id: page.after.id, popularity: page.after.key };
  const listed = found
    .filter((row) => !after || compare(row, after) > 0)
    .sort(compare)
    .slice(0, page.limit);
  return {
    rows: await wholeRows(db, scope, idsOf(listed)),
    count: page.countLimit && Math.min(found.length, page.countLimit),
  };
}

type Placed = Pick<ProjectTable, "id" | "popularity">;

function comparison({ field, direction }: ProjectOrder): (one: Placed, other: Placed) => number {
  const byId = (one: Placed, other: Placed) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);
  const sign = direction === "asc" ? 1 : -1;
  if (field === "id") return (one, other) => sign * byId(one, other);
  return (one, other) => sign * (one.popularity - other.popularity || byId(other, one));
}

/** Tests one project after the other in the order of the page, until that is full. */
export async function scan(
  db: Reader,
  scope: Scope,
  { after, limit, order, filter }: ProjectPage,
): Promise<FoundProject[]> {
  const own = builderOf(db).selectFrom("project").where("project.organization_id", "=", scope.organizationId);
  const all = applyFilter(own, scope, filter).select(PROJECT_COLUMNS);
  const { popularity, id } = directions(order);
  if (order.field === "id") {
    const rest = after ? all.where("project.id", id.behind, after.id) : all;
    return rest.orderBy("project.id", id.direction).limit(limit).execute();
  }
  const ordered = all.orderBy("project.popularity", popularity.direction).orderBy("project.id", id.direction);
  if (!after) return ordered.limit(limit).execute();
  const ties = await ordered
    .where("project.popularity", "=", after.key)
    .where("project.id", id.behind, after.id)
    .limit(limit)
    .execute();
  if (ties.length === limit) return ties;
  const behind = await ordered
    .where("project.popularity", popularity.behind, after.key)
    .limit(limit - ties.length)
    .execute();
  return [...ties, ...behind];
}

/**
 * Sorts the candidates of a source and tests them until the page is full: first as many as it
 * holds, since nearly all usually pass, then twice as many, and so on.
 */
async function firstMatching(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  projects: Projects<object>,
): Promise<FoundProject[]> {
  const all = await sorted(projects.select("project.id"), page).execute();
  const found: { id: string }[] = [];
  let [start, size] = [0, page.limit];
  while (found.length < page.limit && start < all.length) {
    const some = all.slice(start, start + size);
    const passing = await applyFilter(projectsById(db, idsOf(some)), scope, page.filter)
      .select("project.id")
      .execute();
    const ids = new Set(idsOf(passing));
    found.push(...some.filter(({ id }) => ids.has(id)));
    start += size;
    size *= 2;
  }
  return wholeRows(db, scope, idsOf(found.slice(0, page.limit)));
}

/** Tests all candidates of a source, however many, and keeps only the page. */
export async function findPage(
  db: Reader,
  scope: Scope,
  page: ProjectPage,
  { projects }: CandidateSource,
): Promise<FoundProject[]> {
  const all = applyFilter(projects, scope, page.filter).select("project.id").distinct();
  const found = await sorted(all, page).limit(page.limit).execute();
  return wholeRows(db, scope, idsOf(found));
}

/**
 * Returns the rows after the last page, in the page's order. The index by popularity is excluded:
 * its rows are spread over the whole file, where a source has named the projects.
 */
function sorted<O>(all: Projects<O>, { after, order }: ProjectPage): Projects<O> {
  const ways = directions(order);
  const popularity = unindexed<number>("project.popularity");
  if (order.field === "id") {
    const rest = after ? all.where("project.id", ways.id.behind, after.id) : all;
    return rest.orderBy("project.id", ways.id.direction);
  }
  const rest = after
    ? all.where((eb) =>
        eb.or([
          eb(popularity, ways.popularity.behind, after.key),
          eb.and([eb(popularity, "=", after.key), eb("project.id", ways.id.behind, after.id)]),
        ]),
      )
    : all;
  return rest.orderBy(popularity, ways.popularity.direction).orderBy("project.id", ways.id.direction);
}

/** Returns the number of candidates that pass, counted up to the page's limit. */
export async function countMatching(
  db: Reader,
  scope: Scope,
  { filter, countLimit = 0 }: ProjectPage,
  { projects }: CandidateSource,
): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom(
      applyFilter(projects, scope, filter).select("project.id").distinct().limit(countLimit).as("found"),
    )
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the rows of a page, in the order of its ids. */
async function wholeRows(db: Reader, scope: Scope, ids: readonly string[]): Promise<FoundProject[]> {
  if (ids.length === 0) return [];
  const rows = await projectsById(db, ids)
    .select(PROJECT_COLUMNS)
    .where("project.organization_id", "=", scope.organizationId)
    .execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

function projectsById(db: Reader, ids: readonly string[]): Projects<object> {
  const all = builderOf(db)
    .selectFrom(listAsRows<string>(JSON.stringify(ids)).as("asked"))
    .crossJoin("project");
  // The builder's type includes the other table as well, which is enough of a difference for it.
  return all.whereRef("project.id", "=", "asked.value") as unknown as Projects<object>;
}
