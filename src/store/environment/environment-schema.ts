/** Rows of environments; ../schema.ts combines them and explains how to read them. */

export interface EnvironmentTable {
  id: string;
  organization_id: string;
  project_id: string | null;
  runner_id: string | null;
  environment_class_id: string | null;
  creator_id: string;
  /** EnvironmentPhase by number. */
  phase: number;
  desired_phase: number;
  session_id: string | null;
  created_at: number;
  archived_at: number | null;
  /** 1 once the project's popularity counts this environment. */
  counted: number;
  search_text: string;
  body: string;
  /**
   * Time since which it has been stopped, or since it left the archive if that is later; null while it is not stopped.
   */
  stopped_at: number | null;
  /** End of its lifetime: it is then stopped, and with a strict lifetime cannot be started again. */
  lockdown_at: number | null;
  /** Id of the security policy that applies in it. */
  security_policy_id: string | null;
  /** Setters of its source, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
  /**
   * JSON of the subjects that have sent to its agents through a group role, including to removed ones; null for none.
   */
  steered_by?: string | null;
}

/** The changes of an environment, as last reported by its runner. */
export interface EnvironmentChangesTable {
  /** Id of the environment, which may have been removed. */
  environment_id: string;
  organization_id: string;
  /** The creator of the environment. */
  creator_id: string;
  creator_principal: number;
  /** Id of the action that the environment was created for, with which the row is removed; null for none. */
  action_id: string | null;
  refreshed_at: number;
  /** Number of reports that changed anything. */
  version: number;
  /** EnvironmentChanges. */
  body: string;
  /** JSON of StoredDiff by the number of its base, see environment-changes.ts. */
  diffs: string;
}

/** The differences in one file. */
export interface EnvironmentFileDiffTable {
  environment_id: string;
  organization_id: string;
  /** DiffBase by number. */
  base: number;
  /** Position in the diff, from 1. */
  place: number;
  /** EnvironmentFileDiff. */
  body: string;
}

/** A question about an environment for its runner; the row is removed with the call that waits for the answer. */
export interface EnvironmentQuestionTable {
  id: string;
  organization_id: string;
  /** Id of the runner that must answer. */
  runner_id: string;
  environment_id: string;
  /** Id of the subject that waits for the answer. */
  asker_id: string;
  /** Time from which nothing waits for the answer. */
  ends_at: number;
  /** runner.v1.EnvironmentQuestion, without values that must not be stored. */
  body: string;
  /** runner.v1.AnswerRequestRequest in binary; null until it is answered. */
  answer: Uint8Array | null;
}

/** The counts stored with the connections of an environment. */
export interface EnvironmentEgressTable {
  /** Id of the environment, which may have been removed. */
  environment_id: string;
  organization_id: string;
  /** The creator of the environment. */
  creator_id: string;
  creator_principal: number;
  /** Id of the action that the environment was created for, with which the rows are removed; null for none. */
  action_id: string | null;
  /** Number of stored denied connections. */
  refused: number;
  /** Number of stored allowed connections. */
  allowed: number;
  /** 1 if there were more connections than are stored. */
  left_out: number;
}

/** A connection that work in an environment has requested. */
export interface EnvironmentConnectionTable {
  environment_id: string;
  organization_id: string;
  /** Position among the connections of the environment, from 1. */
  place: number;
  /** Id assigned by the runner. */
  id: string;
  /** EnvironmentConnection. */
  body: string;
}
