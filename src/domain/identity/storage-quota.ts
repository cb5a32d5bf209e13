import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../error.ts";

/**
 * Operations that are allowed in an organization whose storage is full: they end, remove or protect
 * something, replace something that has its own limit, or check the quota for what they start
 * themselves. A phase or flag that they write is a few bytes longer than the one before.
 */
export const EXEMPT_FROM_QUOTA: ReadonlySet<string> = new Set([
  "service.v1.AccountService/BlockAccount",
  "service.v1.AccountService/UnblockAccount",
  "service.v1.AgentReviewService/DeleteAgentReviewDraft",
  "service.v1.AgentService/DeleteAgent",
  "service.v1.AgentService/DeleteAgentExecution",
  "service.v1.AgentService/StopAgentExecution",
  "service.v1.ApprovalService/DecideApproval",
  "service.v1.EnvironmentService/ArchiveEnvironment",
  "service.v1.EnvironmentService/DeleteEnvironment",
  "service.v1.EnvironmentService/StartEnvironment",
  "service.v1.EnvironmentService/StopEnvironment",
  "service.v1.EnvironmentService/UnarchiveEnvironment",
  "service.v1.EventSubscriptionService/DeleteEventSubscription",
  "service.v1.EventSubscriptionService/RedeliverEvent",
  "service.v1.EventSubscriptionService/RotateEventSubscriptionSecret",
  "service.v1.GroupService/DeleteGroup",
  "service.v1.GroupService/DeleteRoleAssignment",
  "service.v1.GroupService/DeleteMembership",
  "service.v1.OrganizationService/GetOrganizationInvite",
  "service.v1.OrganizationService/LeaveOrganization",
  "service.v1.OrganizationService/RemoveMember",
  "service.v1.OrganizationService/SetRole",
  "service.v1.OrganizationService/UpdateOrganizationPolicies",
  "service.v1.PrebuildService/CancelPrebuild",
  "service.v1.PrebuildService/DeletePrebuild",
  "service.v1.ProjectService/DeleteProject",
  "service.v1.ResourceService/ApplyChanges",
  "service.v1.RunnerConfigurationService/DeleteHostAuthenticationToken",
  "service.v1.RunnerConfigurationService/UpdateEnvironmentClass",
  "service.v1.RunnerConfigurationService/UpdateHostAuthenticationToken",
  "service.v1.RunnerService/DeleteRunner",
  "service.v1.SecretService/DeleteSecret",
  "service.v1.SecretService/UpdateSecretValue",
  "service.v1.SecurityService/DeleteSecurityPolicy",
  "service.v1.SecurityService/UpdateSecurityPolicy",
  "service.v1.ServiceAccountService/DeleteServiceAccount",
  "service.v1.ServiceAccountService/DeleteServiceAccountToken",
  "service.v1.ServiceAccountService/DeleteServiceAccountTrust",
  "service.v1.UserService/DeletePersonalAccessToken",
  "service.v1.UserService/RenewPersonalAccessToken",
  "service.v1.UserService/RevokeSession",
  "service.v1.UserService/SetSuspended",
  "service.v1.WorkflowService/CancelWorkflowExecution",
  "service.v1.WorkflowService/CancelWorkflowExecutionAction",
  "service.v1.WorkflowService/DeleteWorkflow",
  "service.v1.WorkflowService/GetWorkflowWebhookSecret",
  "service.v1.WorkflowService/RedeliverWorkflowTriggerEvent",
  "service.v1.WorkflowService/RotateWorkflowWebhookSecret",
  "service.v1.WorkflowService/StartWorkflow",
]);

/**
 * Requires that a write does not leave an organization with more than its quota and more than it
 * stored before.
 * @param before bytes that the organization stored before the write
 * @param after bytes that it would store
 * @throws DomainError STORAGE_QUOTA_EXCEEDED
 */
export function requireStorageQuota(before: number, after: number, limitBytes: number): void {
  if (after <= limitBytes || after <= before) return;
  throw new DomainError(
    ErrorReason.STORAGE_QUOTA_EXCEEDED,
    `the organization stores ${before} bytes, would store ${after} and may store ${limitBytes}: ` +
      "delete workflows, agent executions, environments or projects, or have the operator raise --organization-quota",
    { used_bytes: String(before), needed_bytes: String(after), limit_bytes: String(limitBytes) },
  );
}
