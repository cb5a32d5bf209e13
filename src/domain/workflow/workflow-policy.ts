import type { Workflow, WorkflowAction, WorkflowTriggerContext } from "#gen/service/v1/workflow_pb.js";
import type { Role } from "../identity/caller.ts";
import { requireAgentAllowed, requireAgentSettingsAllowed } from "../policy/agent-policy.ts";
import type { Policies } from "../policy/policies.ts";
import { policyDenied } from "../policy/policy-decision.ts";

/**
 * Requires that the organization's policy allows a context. An agent without code works in an empty
 * environment, which a policy can forbid.
 * @throws PolicyDenied
 */
export function requireContextAllowed(
  policies: Policies,
  { context }: WorkflowTriggerContext,
  role: Role,
): void {
  if (!policies.effective.disableFromScratch || role === "administrator" || context.case !== "agent") return;
  const allowed = "members to run over projects and repositories only";
  throw policyDenied(policies, { fieldPath: "disableFromScratch", allowed });
}

/**
 * Requires an approval step before an action opens a pull request, if the organization's policy demands it.
 * @throws PolicyDenied
 */
export function requireStepsAllowed(policies: Policies, action: WorkflowAction | undefined): void {
  if (!policies.effective.agentPolicy?.approvals?.steps?.requiredBeforePullRequests) return;
  const cases = (action?.steps ?? []).map(({ step }) => step.case);
  const pullRequest = cases.indexOf("pullRequest");
  if (pullRequest < 0 || cases.slice(0, pullRequest).includes("approval")) return;
  const fieldPath = "agentPolicy.approvals.steps.requiredBeforePullRequests";
  throw policyDenied(policies, { fieldPath, allowed: "pullRequest steps after an approval step only" });
}

/**
 * Requires that the organization's policies allow a workflow to start over a context.
 * @param role of the executor
 * @throws PolicyDenied
 */
export function requireWorkflowAllowed(
  policies: Policies,
  { spec }: Workflow,
  context: WorkflowTriggerContext,
  role: Role,
): void {
  requireContextAllowed(policies, context, role);
  requireAgentAllowed(policies, spec?.agentId ?? "");
  if (spec?.extAgentSettings) requireAgentSettingsAllowed(policies, spec.extAgentSettings);
}
