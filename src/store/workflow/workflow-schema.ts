/** Rows of workflows and their executions; ../schema.ts unites them and says how to read them. */

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
  /** Folded name, description and id, one a line. */
  search_text: string;
  /** When an execution last came to its end; null while none has. It changes on its own. */
  completed_at: number | null;
  body: string;
}

/** What deliveries to a workflow's webhook are signed with, sealed. */
export interface WorkflowSecretTable {
  workflow_id: string;
  key_id: string;
  sealed: Uint8Array;
  /** The secret before it, which verifies too until `previous_until`. */
  previous_key_id: string | null;
  previous_sealed: Uint8Array | null;
  previous_until: number | null;
  /** JSON array: the subjects that were given the secret, see source-setter.ts. */
  known_to: string;
  previous_known_to: string;
}

/** The time triggers of workflows that are enabled. */
export interface WorkflowScheduleTable {
  workflow_id: string;
  /** Place of the trigger in the workflow's list. */
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
  /** Place of the trigger in the workflow's list when it fired; null for a start with a context of its own. */
  trigger_index: number | null;
  trigger_kind: "manual" | "time" | "pull_request";
  creator_id: string;
  executor_id: string;
  executor_principal: number;
  /** WorkflowExecutionPhase by number. */
  phase: number;
  desired_phase: number;
  /** 0 until its actions have been made from its context. */
  expanded: number;
  /** 1 once it failed as a whole, or an action of it did. */
  failed: number;
  /** How many actions are in each state: they change on their own, and are put into the status when it is read. */
  pending_count: number;
  running_count: number;
  failed_count: number;
  done_count: number;
  stopped_count: number;
  started_at: number;
  finished_at: number | null;
  /** Folded id and name of the workflow when it started, one a line. */
  search_text: string;
  /** JSON object: the environment variables that commands read parameters from. */
  variables: string;
  /** JSON lists of WorkflowError: the first 10 of its actions, which are not in the body. */
  action_failures: string;
  action_warnings: string;
  retried_execution_id: string | null;
  /** WorkflowExecution without its plan, its five counts 0. */
  body: string;
  /** Who chose what it runs over, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
}

/** What executions carry out, which never changes: domain/workflow-plan.ts. */
export interface WorkflowPlanTable {
  execution_id: string;
  /** WorkflowExecution.Spec with nothing but the plan. */
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
  /** 1 while the queue of work or a runner has it: from when it is given there to its end. */
  queued: number;
  failed: number;
  environment_id: string | null;
  started_at: number | null;
  /** While it runs: when its longest time is over; null without such a limit. */
  stops_at: number | null;
  /** JSON of ActionOutput; null while nothing was reported. */
  outputs: string | null;
  body: string;
}

/** What steps printed, in pieces as they came. */
export interface StepLogTable {
  action_id: string;
  attempt: number;
  step_index: number;
  /** Place of the piece in all that the step printed, in bytes. */
  start: number;
  data: Uint8Array;
}

export interface WorkflowTriggerEventTable {
  id: string;
  organization_id: string;
  workflow_id: string;
  /** When it was entered; the body tells when it came due. */
  at: number;
  /** WorkflowTriggerEvent.Source by number. */
  source: number;
  /** TriggerVerdict by number. */
  verdict: number;
  /** One of a kind within its workflow: what must not start twice. Null where that may. */
  dedupe_key: string | null;
  execution_id: string | null;
  /** JSON of what a redelivery needs; `{}` without. */
  payload: string;
  body: string;
}

/** Deliveries of the last 24 hours by the id that their sender gave them. */
export interface WebhookDeliveryTable {
  workflow_id: string;
  delivery_id: string;
  at: number;
  /** JSON list of the ids of the entries that it made in the ledger. */
  event_ids: string;
}

/** Stops of executions and environments that go on in turns. */
export interface PendingStopTable {
  organization_id: string;
  mode: "cancel" | "cut_off";
  target: "execution" | "workflow" | "executor" | "creator";
  target_id: string;
  /** What has a greater id began later, and is not meant. */
  up_to: string;
}
