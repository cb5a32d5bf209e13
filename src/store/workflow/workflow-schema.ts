/**
 * Rows of workflows and their executions; ../schema.ts combines them and explains how to read them.
 */

export interface WorkflowTable {
  id: string;
  organization_id: string;
  creator_id: string;
  executor_id: string;
  /** Principal by number. */
  executor_principal: number;
  disabled: number;
  deleting: number;
  /** Folded name. */
  sort_name: string;
  /** Folded name, description and id, one per line. */
  search_text: string;
  /**
   * Time at which an execution last ended; null while none has. Not part of the body, since
   * executions change it.
   */
  completed_at: number | null;
  body: string;
}

/** The secrets that sign deliveries to a workflow's webhook, sealed. */
export interface WorkflowSecretTable {
  workflow_id: string;
  key_id: string;
  sealed: Uint8Array;
  /** Id of the key of the previous secret, which is also valid until `previous_until`. */
  previous_key_id: string | null;
  previous_sealed: Uint8Array | null;
  previous_until: number | null;
  /** JSON array: the subjects that were given the secret, see source-setter.ts. */
  known_to: string;
  previous_known_to: string;
}

/** The time triggers of workflows. */
export interface WorkflowScheduleTable {
  workflow_id: string;
  /** Index of the trigger in the workflow's list. */
  trigger_index: number;
  organization_id: string;
  cron_expression: string;
  /** Name in the IANA database; empty for UTC. */
  time_zone: string;
  /** OverlapPolicy by number. */
  overlap_policy: number;
  /** The next instant. */
  next_at: number;
}

export interface WorkflowExecutionTable {
  id: string;
  organization_id: string;
  workflow_id: string;
  /**
   * Index of the trigger in the workflow's list when it fired; null for a start with a context of
   * its own.
   */
  trigger_index: number | null;
  trigger_kind: "manual" | "time" | "pull_request";
  creator_id: string;
  executor_id: string;
  executor_principal: number;
  /** WorkflowExecutionPhase by number. */
  phase: number;
  desired_phase: number;
  /**
   * 0 until its actions have been created from its context, 1 afterwards; 2 while their creation waits for an
   * approval.
   */
  expanded: number;
  /** 1 once it, or one of its actions, failed. */
  failed: number;
  /**
   * Number of actions in each state: they change often, and are put into the status when it is
   * read.
   */
  pending_count: number;
  running_count: number;
  failed_count: number;
  done_count: number;
  stopped_count: number;
  started_at: number;
  finished_at: number | null;
  /** Folded id and name of the workflow when it started, one per line. */
  search_text: string;
  /** JSON object: the environment variables from which commands read parameters. */
  variables: string;
  /** JSON lists of WorkflowError: the first 10 of its actions, which are not in the body. */
  action_failures: string;
  action_warnings: string;
  retried_execution_id: string | null;
  /** WorkflowExecution without its plan, its status and other changing values; it is written once. */
  body: string;
  /** Subjects that chose its context, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
  /** Spec.session. */
  session: string | null;
  /**
   * JSON of the Status without what the columns above hold, see workflow-progress.ts. Null, as the session, only until
   * the migration has filled it.
   */
  progress: string | null;
  /** Time at which retention hid it from all readers; its parts are removed in portions. Null for all others. */
  removed_at?: number | null;
}

/** The immutable plans of executions: domain/workflow/execution/workflow-plan.ts. */
export interface WorkflowPlanTable {
  execution_id: string;
  /** WorkflowExecution.Spec with the plan only. */
  body: string;
}

export interface WorkflowActionTable {
  id: string;
  organization_id: string;
  workflow_id: string;
  execution_id: string;
  is_report: number;
  /** WorkflowExecutionActionPhase by number. */
  phase: number;
  desired_phase: number;
  /** 1 while it is in the work queue or on a runner. */
  queued: number;
  failed: number;
  environment_id: string | null;
  started_at: number | null;
  /** While it runs: the time of its timeout; null without one. */
  stops_at: number | null;
  /** JSON of ActionOutput; null while nothing was reported. */
  outputs: string | null;
  /** WorkflowExecutionAction with only its name, context and limits; it is written once. */
  body: string;
  /** Spec.session. */
  session: string | null;
  finished_at: number | null;
  /** Number of the newest attempt; 0 before the first. */
  attempt: number;
  /**
   * JSON of the Status without what the columns above hold, see workflow-progress.ts. Null, as the session, only until
   * the migration has filled it.
   */
  progress: string | null;
}

/** Output of steps, in pieces as they arrived. */
export interface StepLogTable {
  action_id: string;
  attempt: number;
  step_index: number;
  /** Offset of the piece in the whole output of the step, in bytes. */
  start: number;
  data: Uint8Array;
}

export interface WorkflowTriggerEventTable {
  id: string;
  organization_id: string;
  workflow_id: string;
  /** Time at which it was entered; the body contains the time at which it was due. */
  at: number;
  /** WorkflowTriggerEvent.Source by number. */
  source: number;
  /** TriggerVerdict by number. */
  verdict: number;
  /**
   * Key that is unique within its workflow, for events that must not start twice; a long one as its hash. Null for
   * others.
   */
  dedupe_key: string | null;
  execution_id: string | null;
  /** JSON of the data that a redelivery needs; `{}` without. */
  payload: string;
  body: string;
}

/** Deliveries of the last 24 hours by the id that their sender gave them. */
export interface WebhookDeliveryTable {
  workflow_id: string;
  delivery_id: string;
  at: number;
  /** JSON list of the ids of the entries that it created in the ledger. */
  event_ids: string;
}

/** Stops of executions and environments that are done in several transactions. */
export interface PendingStopTable {
  organization_id: string;
  mode: "cancel" | "cut_off";
  target: "execution" | "workflow" | "executor" | "creator";
  target_id: string;
  /** Resources with a greater id began later, and are not affected. */
  up_to: string;
}
