import type {
  EventDeliveryTable,
  EventSubscriptionTable,
} from "./access/event-subscription/event-subscription-schema.ts";
import type {
  AgentExecutionAnnotationTable,
  AgentExecutionTable,
  AgentInputImageTable,
  AgentInputTable,
  AgentInterestTable,
  AgentOutputTable,
  AgentReviewDraftTable,
  AgentTable,
} from "./agent/agent-schema.ts";
import type { ApprovalDeciderTable, ApprovalTable } from "./approval/approval-schema.ts";
import type {
  EnvironmentChangesTable,
  EnvironmentConnectionTable,
  EnvironmentEgressTable,
  EnvironmentFileDiffTable,
  EnvironmentQuestionTable,
  EnvironmentTable,
} from "./environment/environment-schema.ts";
import type {
  AccountTable,
  BlockReceiptTable,
  DeviceLoginTable,
  GroupMembershipTable,
  MachineTokenUseTable,
  MemberGroupTable,
  MemberTable,
  OrganizationInviteTable,
  OrganizationStorageTable,
  OrganizationTable,
  ProviderIdentityTable,
  RoleAssignmentTable,
  ServiceAccountTable,
  ServiceAccountTrustTable,
  SignInAttemptTable,
  SubscriptionTable,
  TokenTable,
} from "./identity/identity-schema.ts";
import type { OrganizationPoliciesTable, SecretTable, SecurityPolicyTable } from "./policy/policy-schema.ts";
import type {
  PrebuildScheduleTable,
  PrebuildTable,
  ProjectAnnotationTable,
  ProjectEnvironmentClassTable,
  ProjectRemoteTable,
  ProjectTable,
  ProjectUseTable,
} from "./project/project-schema.ts";
import type {
  AuditAnchorTable,
  AuditExportTable,
  AuditLogTable,
  EventTable,
  FactTable,
  IdempotencyTable,
  InstallationTable,
  PruningTable,
} from "./record/record-schema.ts";
import type {
  EnvironmentClassTable,
  HostTokenTable,
  RunnerTable,
  WorkTable,
  WorkTurnTable,
} from "./runner/runner-schema.ts";
import type { PullRequestTable } from "./workflow/pull-request/pull-request-schema.ts";
import type {
  PendingStopTable,
  StepLogTable,
  WebhookDeliveryTable,
  WorkflowActionTable,
  WorkflowExecutionTable,
  WorkflowPlanTable,
  WorkflowScheduleTable,
  WorkflowSecretTable,
  WorkflowTable,
  WorkflowTriggerEventTable,
} from "./workflow/workflow-schema.ts";

/**
 * The rows, one interface per table. Times are milliseconds since 1970 UTC, ids are lower-case UUID
 * v7 text, flags are 0 or 1, and `body` is the resource in canonical Protobuf JSON.
 */
export interface Schema {
  organization: OrganizationTable;
  organization_storage: OrganizationStorageTable;
  organization_invite: OrganizationInviteTable;
  account: AccountTable;
  provider_identity: ProviderIdentityTable;
  device_login: DeviceLoginTable;
  sign_in_attempt: SignInAttemptTable;
  member: MemberTable;
  token: TokenTable;
  runner: RunnerTable;
  environment_class: EnvironmentClassTable;
  project: ProjectTable;
  project_environment_class: ProjectEnvironmentClassTable;
  project_remote: ProjectRemoteTable;
  project_annotation: ProjectAnnotationTable;
  project_use: ProjectUseTable;
  environment: EnvironmentTable;
  environment_changes: EnvironmentChangesTable;
  environment_file_diff: EnvironmentFileDiffTable;
  environment_egress: EnvironmentEgressTable;
  environment_connection: EnvironmentConnectionTable;
  environment_question: EnvironmentQuestionTable;
  service_account: ServiceAccountTable;
  service_account_trust: ServiceAccountTrustTable;
  machine_token_use: MachineTokenUseTable;
  member_group: MemberGroupTable;
  group_membership: GroupMembershipTable;
  role_assignment: RoleAssignmentTable;
  organization_policies: OrganizationPoliciesTable;
  security_policy: SecurityPolicyTable;
  secret: SecretTable;
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
  pull_request: PullRequestTable;
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
  agent_review_draft: AgentReviewDraftTable;
  approval: ApprovalTable;
  approval_decider: ApprovalDeciderTable;
  audit_anchor: AuditAnchorTable;
  audit_export: AuditExportTable;
  audit_log: AuditLogTable;
  event: EventTable;
  event_subscription: EventSubscriptionTable;
  event_delivery: EventDeliveryTable;
  idempotency: IdempotencyTable;
  fact: FactTable;
}
