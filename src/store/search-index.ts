import type { FoundProjects, ProjectPage } from "./project/project-page.ts";
import type { Scope } from "./store.ts";

/**
 * The search of one kind of resource. How the texts are indexed, which index leads to candidates and where the search
 * runs is the engine's own; the result is exact.
 */
export interface SearchIndex<Query, Result> {
  /**
   * Returns the rows of a scope that contain the query's text and pass its other conditions: in its order, after its
   * position, up to its limit. It sees the commits up to its call.
   * @throws DomainError VALUE_UNUSABLE when it takes too long; StoreUnavailable when too many wait;
   * the signal's reason once that is aborted
   */
  find(scope: Scope, query: Query, signal?: AbortSignal): Promise<Result>;
}

/** The search of projects; WriteTransaction.indexText adds their texts. */
export type ProjectSearch = SearchIndex<ProjectPage, FoundProjects>;
