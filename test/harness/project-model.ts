/**
 * A reference model of ListProjects, computed naively and without code of src/: each query examines
 * every project. It follows only the specification and the contract's comments.
 */

/** A project as the model stores it. */
export interface KnownProject {
  readonly id: string;
  readonly name: string;
  readonly creatorId: string;
  /** Remotes of the git specs, as given. */
  readonly remotes: readonly string[];
  /** Context URLs of its other specs; each is the address of a repository. */
  readonly contextUrls: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  /** Runners of its environment classes, with their kinds by name. */
  readonly runners: readonly { readonly id: string; readonly kind: string }[];
  /** Creation times of all environments ever created from it, in ms since 1970. */
  readonly uses: readonly number[];
  /** The project as lists show it. */
  readonly body: object;
}

/** ListProjectsRequest in JSON. */
export interface ListQuery {
  readonly filter?: {
    readonly projectIds?: readonly string[];
    readonly search?: string;
    readonly runnerIds?: readonly string[];
    readonly runnerKinds?: readonly string[];
    readonly specRemoteUris?: readonly string[];
    readonly creatorIds?: readonly string[];
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly sort?: { readonly field?: string; readonly order?: string };
  readonly pagination?: { readonly pageSize?: number; readonly token?: string };
  readonly count?: { readonly include?: boolean };
}

export interface ExpectedPage {
  readonly projects: readonly KnownProject[];
  readonly isLast: boolean;
  readonly count?: { readonly value: number; readonly relation: string };
}

const DEFAULT_PAGE_SIZE = 25;
const POPULARITY_DOUBLES_AFTER_MS = 3 * 24 * 3600 * 1000;

/** Returns all pages of a query in order; at least one. */
export function expectedPages(
  projects: readonly KnownProject[],
  query: ListQuery,
  countLimit: number,
): ExpectedPage[] {
  const found = inOrder(matching(projects, query.filter), query.sort ?? {});
  const size = query.pagination?.pageSize || DEFAULT_PAGE_SIZE;
  const starts = Array.from(
    { length: Math.max(1, Math.ceil(found.length / size)) },
    (_, page) => page * size,
  );
  return starts.map((start) => ({
    projects: found.slice(start, start + size),
    isLast: start + size >= found.length,
    ...(start === 0 && query.count?.include && { count: counted(found.length, countLimit) }),
  }));
}

/** Returns the last segment of a remote's path, percent-decoded and without `.git`. */
export function repositoryNameOf(remote: string): string {
  const scheme = remote.indexOf("://");
  let path: string;
  if (scheme >= 0) {
    const [withoutQuery = ""] = remote.slice(scheme + 3).split(/[?#]/);
    path = withoutQuery.split("/").slice(1).join("/");
  } else {
    path = remote.slice(remote.indexOf(":", remote.lastIndexOf("]") + 1) + 1);
  }
  const segment = path.split("/").findLast((each) => each !== "") ?? "";
  return segment.endsWith(".git") ? segment.slice(0, -4) : segment;
}

/** Returns the remote, and also its ssh:// form when it has the scp-like form. */
export function remoteFormsOf(remote: string): string[] {
  if (remote.includes("://")) return [remote];
  const colon = remote.indexOf(":", remote.lastIndexOf("]") + 1);
  const path = remote.slice(colon + 1);
  return [remote, `ssh://${remote.slice(0, colon)}/${path.startsWith("/") ? path.slice(1) : path}`];
}

/**
 * Returns the projects that pass a filter: fields combine with AND, values of a field with OR,
 * annotations with AND.
 */
export function matching(
  projects: readonly KnownProject[],
  filter: NonNullable<ListQuery["filter"]> = {},
): KnownProject[] {
  const isFound = finder(filter.search ?? "");
  return projects.filter((project) => passes(project, filter) && isFound(project));
}

function passes(project: KnownProject, filter: NonNullable<ListQuery["filter"]>): boolean {
  return (
    anyOf(filter.projectIds, (id) => id.toLowerCase() === project.id) &&
    anyOf(filter.creatorIds, (id) => id.toLowerCase() === project.creatorId) &&
    anyOf(filter.runnerIds, (id) => project.runners.some((runner) => runner.id === id.toLowerCase())) &&
    anyOf(filter.runnerKinds, (kind) => project.runners.some((runner) => runner.kind === kind)) &&
    anyOf(filter.specRemoteUris, (uri) => project.remotes.flatMap(remoteFormsOf).includes(uri)) &&
    Object.entries(filter.annotations ?? {}).every(([key, value]) => project.annotations[key] === value)
  );
}

/** Returns whether any value matches; an empty list matches everything. */
function anyOf<T>(values: readonly T[] | undefined, holds: (value: T) => boolean): boolean {
  return values === undefined || values.length === 0 || values.some(holds);
}

/** Ignores case as the flags `i` and `u` do, by Unicode's simple case folding. */
function finder(search: string): (project: KnownProject) => boolean {
  const expression = new RegExp(search.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "iu");
  return ({ name, id, remotes, contextUrls }) =>
    [name, id, ...[...remotes, ...contextUrls].map(repositoryNameOf)].some((text) => expression.test(text));
}

function inOrder(projects: readonly KnownProject[], sort: NonNullable<ListQuery["sort"]>): KnownProject[] {
  const byId = (one: KnownProject, other: KnownProject) =>
    one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
  if (sort.field === "id") {
    const ascending = projects.toSorted(byId);
    return sort.order === "SORT_ORDER_DESC" ? ascending.reverse() : ascending;
  }
  const firstUse = Math.min(...projects.flatMap(({ uses }) => uses));
  const scores = new Map(projects.map((project) => [project, weight(project, firstUse)]));
  const score = (project: KnownProject) => scores.get(project) ?? 0;
  const descending = projects.toSorted((one, other) => score(other) - score(one) || byId(one, other));
  return sort.order === "SORT_ORDER_ASC" ? descending.reverse() : descending;
}

/**
 * Returns the sum of the uses, each weighing twice as much as one three days older; the logarithm
 * would not change the order.
 */
function weight({ uses }: KnownProject, since: number): number {
  return uses.reduce((sum, time) => sum + 2 ** ((time - since) / POPULARITY_DOUBLES_AFTER_MS), 0);
}

function counted(number: number, limit: number): { value: number; relation: string } {
  return number > limit
    ? { value: limit, relation: "COUNT_RESPONSE_RELATION_GREATER_THAN_OR_EQUAL" }
    : { value: number, relation: "COUNT_RESPONSE_RELATION_EQUAL" };
}
