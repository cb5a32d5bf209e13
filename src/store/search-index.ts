import type { FoundProjects, ProjectPage } from "./project/project-page.ts";
import type { Scope } from "./store.ts";

/**
 * The search of one kind of resource. How texts are indexed, how candidates are found and where the search runs
 * depends on the engine; the result is exact.
 */
export interface SearchIndex<Query, Result> {
  /**
   * Returns the rows of a scope that contain the query's text and pass its other conditions: in its order, after its
   * position, up to its limit. It sees all commits made before the call.
   * @throws DomainError VALUE_UNUSABLE when it takes too long; StoreUnavailable when too many wait; the signal's
   * reason once that is aborted
   */
  find(scope: Scope, query: Query, signal?: AbortSignal): Promise<Result>;
}

/** The search of projects; WriteTransaction.indexText adds their texts. */
export type ProjectSearch = SearchIndex<ProjectPage, FoundProjects>;
