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
  /** Time since which it has been stopped, or out of the archive when that is later; null while it is not stopped. */
  stopped_at: number | null;
  /**
   * End of its lifetime: it is stopped then, and with a strict lifetime cannot be started again.
   */
  lockdown_at: number | null;
  /** Id of the security policy that applies in it. */
  security_policy_id: string | null;
  /** Setters of its source, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
  /** JSON of the subjects that have sent to its agents by the role of a group, also to those that are gone; null for none. */
  steered_by?: string | null;
}

/** The changes of an environment, as its runner reported it last. */
export interface EnvironmentChangesTable {
  /** Id of the environment, which may have been removed. */
  environment_id: string;
  organization_id: string;
  /** The creator of the environment. */
  creator_id: string;
  creator_principal: number;
  /** Id of the action that the environment was created for, with which the row goes; null for none. */
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
  /** Place in the diff, from 1. */
  place: number;
  /** EnvironmentFileDiff. */
  body: string;
}

/** A question about an environment, which its runner answers; the row goes with the call that waits for the answer. */
export interface EnvironmentQuestionTable {
  id: string;
  organization_id: string;
  /** Id of the runner that is asked. */
  runner_id: string;
  environment_id: string;
  /** Id of the subject that waits for the answer. */
  asker_id: string;
  /** Time from which nobody waits any more. */
  ends_at: number;
  /** runner.v1.EnvironmentQuestion, without what no row may hold. */
  body: string;
  /** runner.v1.AnswerRequestRequest in binary; null until it is answered. */
  answer: Uint8Array | null;
}

/** The counts that are kept with the connections of an environment. */
export interface EnvironmentEgressTable {
  /** Id of the environment, which may have been removed. */
  environment_id: string;
  organization_id: string;
  /** The creator of the environment. */
  creator_id: string;
  creator_principal: number;
  /** Id of the action that the environment was created for, with which the rows go; null for none. */
  action_id: string | null;
  /** Number of refused connections that are kept. */
  refused: number;
  /** Number of allowed connections that are kept. */
  allowed: number;
  /** 1 if there were more. */
  left_out: number;
}

/** A connection that work in an environment has asked for. */
export interface EnvironmentConnectionTable {
  environment_id: string;
  organization_id: string;
  /** Place among the connections of the environment, from 1. */
  place: number;
  /** Id that the runner has given it. */
  id: string;
  /** EnvironmentConnection. */
  body: string;
}
