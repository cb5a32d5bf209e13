import type {
  AgentExecutionAnnotationTable,
  AgentExecutionTable,
  AgentInputImageTable,
  AgentInputTable,
  AgentInterestTable,
  AgentOutputTable,
  AgentTable,
} from "./agent/agent-schema.ts";
import type {
  ProjectAnnotationTable,
  ProjectEnvironmentClassTable,
  ProjectRemoteTable,
  ProjectSearchRangeTable,
  ProjectSearchTable,
  ProjectTable,
  ProjectUseTable,
} from "./project/project-schema.ts";
import type {
  AuditLogTable,
  EventTable,
  IdempotencyTable,
  InstallationTable,
  PruningTable,
} from "./record/record-schema.ts";
import type {
  PendingStopTable,
  PrebuildScheduleTable,
  PrebuildTable,
  StepLogTable,
  WebhookDeliveryTable,
  WorkflowActionTable,
  WorkflowExecutionTable,
  WorkflowPlanTable,
  WorkflowScheduleTable,
  WorkflowSecretTable,
  WorkflowTable,
  WorkflowTriggerEventTable,
  WorkTable,
  WorkTurnTable,
} from "./workflow/workflow-schema.ts";

/**
 * The rows, one interface per table. Times are milliseconds since 1970 UTC,
 * ids are lower-case UUID v7 text, flags are 0 or 1, and `body` is the resource
 * in canonical Protobuf JSON.
 */
export interface Schema {
  organization: OrganizationTable;
  organization_storage: OrganizationStorageTable;
  account: AccountTable;
  member: MemberTable;
  token: TokenTable;
  runner: RunnerTable;
  environment_class: EnvironmentClassTable;
  project: ProjectTable;
  project_environment_class: ProjectEnvironmentClassTable;
  project_remote: ProjectRemoteTable;
  project_annotation: ProjectAnnotationTable;
  project_use: ProjectUseTable;
  project_search: ProjectSearchTable;
  project_search_range: ProjectSearchRangeTable;
  environment: EnvironmentTable;
  service_account: ServiceAccountTable;
  organization_policies: OrganizationPoliciesTable;
  security_policy: SecurityPolicyTable;
  host_token: HostTokenTable;
  subscription: SubscriptionTable;
  block_receipt: BlockReceiptTable;
  installation: InstallationTable;
  pruning: PruningTable;
  workflow: WorkflowTable;
  workflow_secret: WorkflowSecretTable;
  workflow_schedule: WorkflowScheduleTable;
  workflow_execution: WorkflowExecutionTable;
  workflow_plan: WorkflowPlanTable;
  workflow_action: WorkflowActionTable;
  step_log: StepLogTable;
  workflow_trigger_event: WorkflowTriggerEventTable;
  webhook_delivery: WebhookDeliveryTable;
  work: WorkTable;
  work_turn: WorkTurnTable;
  pending_stop: PendingStopTable;
  prebuild_schedule: PrebuildScheduleTable;
  prebuild: PrebuildTable;
  agent: AgentTable;
  agent_execution: AgentExecutionTable;
  agent_execution_annotation: AgentExecutionAnnotationTable;
  agent_input: AgentInputTable;
  agent_input_image: AgentInputImageTable;
  agent_output: AgentOutputTable;
  agent_interest: AgentInterestTable;
  audit_log: AuditLogTable;
  event: EventTable;
  idempotency: IdempotencyTable;
  fact: FactTable;
}

export interface OrganizationTable {
  id: string;
  name: string;
  created_at: number;
  updated_at: number;
  /** Number of the organization's newest audit and event row; held during a commit, see HeldRow. */
  sequence: number;
  /** 1 when the operator marked it so; some policies need it. */
  enterprise: number;
  /** Hash of its newest audit row, which the next one continues; held like the number. */
  chain_hash: Uint8Array | null;
  /** Events up to this number were removed for their age; 0 while none was. */
  pruned_sequence: number;
}

/** Kept right by the engine, in the transaction of each change of what it counts; nothing else writes it. */
export interface OrganizationStorageTable {
  organization_id: string;
  /** Of texts and blobs, in all tables that migration 0016 names. */
  bytes: number;
}

/** A person's login. */
export interface AccountTable {
  id: string;
  name: string;
  email: string;
  created_at: number;
  updated_at: number;
  /** Set while the account is cut off. */
  blocked_at: number | null;
  /** By which members are put in order. */
  name_folded: string;
  /** Folded, one line each: name and email. */
  search_text: string;
}

/** An account's membership in one organization: the `user` of the contract. */
export interface MemberTable {
  id: string;
  organization_id: string;
  account_id: string;
  /** 1 administrator, 2 member. */
  role: number;
  /** When the account joined, or last joined again. */
  created_at: number;
  /** Set once the member was removed: its row stays, since what it made names it, and counts nowhere. */
  left_at: number | null;
}

/** A secret that was issued; the value itself is never stored. */
export interface TokenTable {
  id: string;
  organization_id: string;
  /** What it opens: `exchange` the registration of a runner, the others the API as what they name. */
  kind: "personal" | "service_account" | "runner" | "environment" | "exchange";
  /** The member, service account, runner or environment that it acts for. */
  subject_id: string;
  /** SHA-256 of the value, or its HMAC-SHA256 under the key `hmac_key_id` until its first use after that release. */
  hash: Uint8Array;
  hmac_key_id: string | null;
  read_only: number;
  expires_at: number;
  /** Kept out of the body: it changes on its own. */
  last_used_at: number | null;
  /**
   * PersonalAccessToken or ServiceAccountToken. Of an environment, for one that an agent run got, the run's id as
   * `agentExecutionId`. Otherwise an empty object.
   */
  body: string;
  /**
   * The account that made it; blocking that account disables it. Of an environment, the account that the agent
   * run is for that got it. Null for the operator's, a runner's and other tokens of environments.
   */
  creator_account_id: string | null;
  /** Set when it was disabled for good; it answers like an unknown one. */
  disabled_at: number | null;
}

export interface RunnerTable {
  id: string;
  organization_id: string;
  creator_id: string;
  kind: number;
  body: string;
  /** 1 when it said at its registration that it works on the server's or a member's own machine. */
  local: number;
  /** When it last gave a sign of life; null while it is not connected. */
  seen_at: number | null;
}

export interface EnvironmentClassTable {
  id: string;
  organization_id: string;
  runner_id: string;
  enabled: number;
  body: string;
}

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
  /** Since when it has been stopped; null while it is not. */
  stopped_at: number | null;
  /** End of its lifetime: it is stopped then, and a strict lifetime lets it start no more. */
  lockdown_at: number | null;
  /** The security policy that holds in it. */
  security_policy_id: string | null;
  /** Who set what it begins from, see source-setter.ts; null for its creator. */
  source_set_by?: string | null;
}

export interface ServiceAccountTable {
  id: string;
  organization_id: string;
  creator_account_id: string | null;
  valid_until: number;
  suspended: number;
  /** Folded name and id, one a line. */
  search_text: string;
  body: string;
}

export interface OrganizationPoliciesTable {
  organization_id: string;
  /** OrganizationPolicies, only what was set; defaults are added when it is read. */
  body: string;
  /** JSON object of field path to who set it and when. */
  origins: string;
}

export interface SecurityPolicyTable {
  id: string;
  organization_id: string;
  search_text: string;
  body: string;
}

/** A credential for a source-control host; its values are sealed, each for its own row and column. */
export interface HostTokenTable {
  id: string;
  organization_id: string;
  runner_id: string;
  host: string;
  subject_id: string;
  subject_principal: number;
  expires_at: number | null;
  key_id: string;
  sealed_token: Uint8Array;
  sealed_refresh_token: Uint8Array | null;
  body: string;
}

/** What an account pays for; only the operator adds one. */
export interface SubscriptionTable {
  id: string;
  account_id: string;
  name: string;
  created_at: number;
  cancelled_at: number | null;
}

/** The answer to the first block of an account, for repetitions of it. */
export interface BlockReceiptTable {
  account_id: string;
  blocked_at: number;
  /** BlockAccountResponse. */
  body: string;
}

/** Facts about the installation itself, such as which key file it belongs to. */
export interface FactTable {
  name: string;
  value: string;
}

export type { AuditLogTable, EventTable, IdempotencyTable } from "./record/record-schema.ts";
