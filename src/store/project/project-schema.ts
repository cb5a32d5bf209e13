/** Rows of projects and prebuilds; ../schema.ts unites them and says how to read them. */

export interface ProjectTable {
  id: string;
  organization_id: string;
  creator_id: string;
  /** ProjectPhase by number. */
  desired_phase: number;
  /** log2 of the summed weight of the project's environments; 0 without one. */
  popularity: number;
  /** Folded name, id and repository names, one a line. */
  search_text: string;
  /** Row of the search text in project_search; each text has one of its own. */
  search_row: number | null;
  /** Hidden from reads by default, so no part of the body. */
  technical_description: string;
  /** Project.UsedBy in canonical JSON; it changes on its own. */
  used_by: string;
  body: string;
  /** Who last set its initializer, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
}

/** The full-text index of search texts: it tells rows, not texts. */
export interface ProjectSearchTable {
  rowid: number;
  /** searchTrigrams of the search text. */
  grams: string;
}

/** Which rows of project_search are an organization's. */
export interface ProjectSearchRangeTable {
  organization_id: string;
  number: number;
  /** Held during a commit, see WriteBackRow. */
  last_row: number;
}

/** Which runner's classes a project uses; the body holds the list itself. */
export interface ProjectEnvironmentClassTable {
  project_id: string;
  position: number;
  runner_id: string;
  /** Null for the entry that means the user's local runner. */
  environment_class_id: string | null;
}

export interface ProjectRemoteTable {
  project_id: string;
  organization_id: string;
  remote_uri: string;
}

export interface ProjectAnnotationTable {
  project_id: string;
  organization_id: string;
  key: string;
  value: string;
}

/** Who created environments from a project, and when last. */
export interface ProjectUseTable {
  project_id: string;
  subject_id: string;
  principal: number;
  /** The newest environment; its v7 id orders uses of one millisecond too. */
  environment_id: string;
}

/** Projects that get prebuilds. */
export interface PrebuildScheduleTable {
  project_id: string;
  organization_id: string;
  next_at: number;
}

/** Workspaces that were prepared, or are being. */
export interface PrebuildTable {
  id: string;
  organization_id: string;
  project_id: string;
  environment_class_id: string;
  runner_id: string;
  /** As in domain/prebuild.ts. */
  state: "waiting" | "running" | "ready" | "failed" | "removing";
  /** The instant that it was due at. */
  instant: number;
  executor_id: string;
  executor_principal: number;
  /** While it runs: when its time is over. */
  stops_at: number | null;
  /** JSON of what the audit trail shows of it. */
  body: string;
}
