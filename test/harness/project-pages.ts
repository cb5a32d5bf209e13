import { type Answer, post } from "./call.ts";
import { expectedPages, type ListQuery } from "./project-model.ts";
import type { ImportedOrganization } from "./repository-import.ts";
import type { ReachableServer } from "./server.ts";

/** No test has as many pages; paging that has not ended by then never ends. */
const MAX_PAGES = 2_000;

/** Fetches every page of a query with the given page size. Throws on any status but 200. */
export async function fetchAllPages(
  server: ReachableServer,
  token: string,
  query: ListQuery,
  size?: number,
): Promise<Answer["body"][]> {
  const pages: Answer["body"][] = [];
  let next = "";
  do {
    const pagination = { ...(size !== undefined && { pageSize: size }), ...(next && { token: next }) };
    const answer = await post(server, "ProjectService/ListProjects", { ...query, pagination }, token);
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    if (pages.push(answer.body) > MAX_PAGES) throw new Error(`${JSON.stringify(query)} has no last page`);
    next = answer.body.pagination.nextToken;
  } while (next !== "");
  return pages;
}

/**
 * Fetches every page of a query and compares it with the model.
 *
 * @returns the number of matching projects
 * @throws Error that names the query and the first difference
 */
export async function comparePages(
  server: ReachableServer,
  organization: ImportedOrganization,
  query: ListQuery,
  size: number | undefined,
  countLimit: number,
): Promise<number> {
  const paged = { ...query, ...(size !== undefined && { pagination: { pageSize: size } }) };
  const expected = expectedPages(organization.projects, paged, countLimit);
  const pages = await fetchAllPages(server, organization.token, query, size);
  const differ = (what: string, wanted: unknown, found: unknown): never => {
    const asked = JSON.stringify(paged);
    throw new Error(`${asked}\n${what}\nmodel:  ${JSON.stringify(wanted)}\nserver: ${JSON.stringify(found)}`);
  };
  for (const [index, { projects, count }] of expected.entries()) {
    const page = pages[index] ?? differ("pages", expected.length, pages.length);
    const ids = page.projects.map(({ id }: { id: string }) => id);
    const wantedIds = projects.map(({ id }) => id);
    if (ids.join() !== wantedIds.join()) differ(`ids of page ${index}`, wantedIds, ids);
    if (canonical(page.count) !== canonical(count)) differ(`count of page ${index}`, count, page.count);
    for (const [place, { body }] of projects.entries()) {
      const found = page.projects[place];
      if (canonical(found) !== canonicalBody(body)) differ(`project ${place} of page ${index}`, body, found);
    }
  }
  if (pages.length !== expected.length) differ("pages", expected.length, pages.length);
  return expected.reduce((sum, { projects }) => sum + projects.length, 0);
}

const canonicalBodies = new WeakMap<object, string>();

/** Cached: bodies of the model do not change, and each is compared many times. */
function canonicalBody(body: object): string {
  const text = canonicalBodies.get(body) ?? canonical(body);
  canonicalBodies.set(body, text);
  return text;
}

/** Returns JSON that does not depend on the order of members. */
export function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, each) =>
      typeof each === "object" && each !== null && !Array.isArray(each)
        ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
        : each,
    ) ?? "absent"
  );
}
