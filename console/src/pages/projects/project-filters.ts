import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";

/** What the list of projects is searched, filtered and ordered by; texts as the address has them. */
export interface ProjectsSearch {
  readonly q?: string | undefined;
  /** One of `ORDERS`. */
  readonly sort?: string | undefined;
  /** The kind of the runners that projects run on: `remote` or `local`. */
  readonly on?: string | undefined;
  /** Id of a runner that they run on. */
  readonly runner?: string | undefined;
  /** Id of who made them. */
  readonly by?: string | undefined;
  /** The whole address of a repository of theirs. */
  readonly repository?: string | undefined;
  /** A key, `=` and a value. */
  readonly annotation?: string | undefined;
}

/** Orders of the list by their names in the address, of which the first is that of an address without one. */
export const ORDERS = {
  used: ["Most used first", { field: "popularity", order: SortOrder.DESC }],
  unused: ["Least used first", { field: "popularity", order: SortOrder.ASC }],
  newest: ["Newest first", { field: "id", order: SortOrder.DESC }],
  oldest: ["Oldest first", { field: "id", order: SortOrder.ASC }],
} as const;

/** The kinds of runners by their names in the address. */
export const RUNNER_KINDS = {
  remote: ["Runners of the organization", RunnerKind.REMOTE],
  local: ["Local runners of their users", RunnerKind.LOCAL_CONFIGURATION],
} as const;

const isOneOf = <T extends object>(all: T, name: string): name is keyof T & string =>
  Object.hasOwn(all, name);

/** Returns what the contract's list is asked for; a name that the address has and nothing else knows counts as none. */
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

/** Returns how many filters an address has, besides what is searched and the order. */
export const countFilters = ({ on, runner, by, repository, annotation }: ProjectsSearch): number =>
  [on, runner, by, repository, annotation].filter((each) => each !== undefined).length;
