import type { PrebuildState } from "../../domain/project/prebuild.ts";

/** Rows of projects and prebuilds; ../schema.ts combines them and explains how to read them. */

export interface ProjectTable {
  id: string;
  organization_id: string;
  creator_id: string;
  /** ProjectPhase by number. */
  desired_phase: number;
  /** log2 of the summed weight of the project's environments; 0 without one. */
  popularity: number;
  /** Folded name, id and repository names, one per line. */
  search_text: string;
  /** Row of the search text in the index of an engine that numbers texts; null on other engines. */
  search_row: number | null;
  /** Not part of the body, since reads omit it by default. */
  technical_description: string;
  /** Project.UsedBy in canonical JSON; every new environment changes it. */
  used_by: string;
  body: string;
  /** Last setters of its initializer, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
}

/** The environment classes that projects use, and their runners; the body holds the list itself. */
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

/** The subjects that created environments from a project, and the time of the last one. */
export interface ProjectUseTable {
  project_id: string;
  subject_id: string;
  principal: number;
  /** Id of the newest environment; as a UUID v7 it also orders uses of the same millisecond. */
  environment_id: string;
}

/** Projects that have prebuilds. */
export interface PrebuildScheduleTable {
  project_id: string;
  organization_id: string;
  next_at: number;
}

/** Workspaces that were prepared, or are being prepared. */
export interface PrebuildTable {
  id: string;
  organization_id: string;
  project_id: string;
  environment_class_id: string;
  runner_id: string;
  state: PrebuildState;
  /** Time at which it was due. */
  instant: number;
  executor_id: string;
  executor_principal: number;
  /** Subject that requested it; null for a scheduled one. */
  creator_id: string | null;
  /** While it runs: time at which it is stopped. */
  stops_at: number | null;
  /** JSON in the audit trail's form. */
  body: string;
}
