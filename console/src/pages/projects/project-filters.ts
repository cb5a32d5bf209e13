import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";

/** The search, filters and order of the list of projects, as texts in the address. */
export interface ProjectsSearch {
  readonly q?: string | undefined;
  /** One of `ORDERS`. */
  readonly sort?: string | undefined;
  /** The kind of the projects' runners: `remote` or `local`. */
  readonly on?: string | undefined;
  /** Id of a runner of the projects. */
  readonly runner?: string | undefined;
  /** Id of the projects' creator. */
  readonly by?: string | undefined;
  /** The complete address of a repository of the projects. */
  readonly repository?: string | undefined;
  /** A key, `=` and a value. */
  readonly annotation?: string | undefined;
}

/** Orders of the list by their names in the address. The first is the default. */
export const ORDERS = {
  used: ["Most used first", { field: "popularity", order: SortOrder.DESC }],
  unused: ["Least used first", { field: "popularity", order: SortOrder.ASC }],
  newest: ["Newest first", { field: "id", order: SortOrder.DESC }],
  oldest: ["Oldest first", { field: "id", order: SortOrder.ASC }],
} as const;

/** The kinds of runners by their names in the address. */
export const RUNNER_KINDS = {
  remote: ["Runners of the organization", RunnerKind.REMOTE],
  local: ["Their users' local runners", RunnerKind.LOCAL_CONFIGURATION],
} as const;

const isOneOf = <T extends object>(all: T, name: string): name is keyof T & string =>
  Object.hasOwn(all, name);

/** Returns the request for the contract's list. Unknown names in the address are ignored. */
export function requestOf({
  sort = "",
  on = "",
  runner = "",
  by = "",
  repository = "",
  annotation = "",
}: ProjectsSearch) {
  const equals = annotation.indexOf("=");
  const [key, value] =
    equals === -1 ? [annotation, ""] : [annotation.slice(0, equals), annotation.slice(equals + 1)];
  return {
    sort: ORDERS[isOneOf(ORDERS, sort) ? sort : "used"][1],
    filter: {
      runnerKinds: isOneOf(RUNNER_KINDS, on) ? [RUNNER_KINDS[on][1]] : [],
      runnerIds: runner === "" ? [] : [runner],
      creatorIds: by === "" ? [] : [by],
      specRemoteUris: repository === "" ? [] : [repository],
      annotations: annotation === "" ? {} : { [key]: value },
    },
  };
}

/** Returns how many filters an address has, not counting search and order. */
export const countFilters = ({ on, runner, by, repository, annotation }: ProjectsSearch): number =>
  [on, runner, by, repository, annotation].filter((each) => each !== undefined).length;
