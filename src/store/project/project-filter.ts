import type { SelectQueryBuilder } from "kysely";
import { checkDeadline, contains, unindexed } from "../expressions.ts";
import type { Schema } from "../schema.ts";
import type { Scope } from "../store.ts";

/**
 * The conditions of a list: fields combine with AND, values inside one with OR; empty means any.
 */
export interface ProjectFilter {
  readonly projectIds: readonly string[];
  /** Folded; empty means any. */
  readonly search: string;
  readonly runnerIds: readonly string[];
  readonly runnerKinds: readonly number[];
  readonly remoteUris: readonly string[];
  readonly creatorIds: readonly string[];
  /** Pairs that a project must all have. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Returns whether a filter accepts every project. */
export function isEmptyFilter(filter: ProjectFilter): boolean {
  return Object.values(filter).every((values) => Object.keys(values).length === 0);
}

/** A query over projects, possibly joined with other tables. */
export type Projects<O> = SelectQueryBuilder<Schema, "project", O>;

/**
 * Restricts a query to the projects of the scope that a filter accepts. It only tests the rows of
 * the query: an index of the organization or of a creator would be read again for each candidate
 * row. The query ends with an error at the connection's time limit, which only the search thread
 * has.
 */
export function applyFilter<O>(all: Projects<O>, scope: Scope, filter: ProjectFilter): Projects<O> {
  let query = all
    .where(unindexed("project.organization_id"), "=", scope.organizationId)
    .where(checkDeadline());
  if (filter.projectIds.length > 0) query = query.where("project.id", "in", filter.projectIds);
  if (filter.creatorIds.length > 0)
    query = query.where(unindexed("project.creator_id"), "in", filter.creatorIds);
  if (filter.search !== "") query = query.where(contains("project.search_text", filter.search));
  if (filter.remoteUris.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_remote")
          .select("project_remote.project_id")
          .whereRef("project_remote.project_id", "=", "project.id")
          .where("project_remote.remote_uri", "in", filter.remoteUris),
      ),
    );
  }
  if (filter.runnerIds.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_environment_class")
          .select("project_environment_class.project_id")
          .whereRef("project_environment_class.project_id", "=", "project.id")
          .where("project_environment_class.runner_id", "in", filter.runnerIds),
      ),
    );
  }
  if (filter.runnerKinds.length > 0) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_environment_class")
          .innerJoin("runner", "runner.id", "project_environment_class.runner_id")
          .select("project_environment_class.project_id")
          .whereRef("project_environment_class.project_id", "=", "project.id")
          .where("runner.kind", "in", filter.runnerKinds),
      ),
    );
  }
  for (const [key, value] of Object.entries(filter.annotations)) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom("project_annotation")
          .select("project_annotation.project_id")
          .whereRef("project_annotation.project_id", "=", "project.id")
          .where("project_annotation.key", "=", key)
          .where("project_annotation.value", "=", value),
      ),
    );
  }
  return query;
}
