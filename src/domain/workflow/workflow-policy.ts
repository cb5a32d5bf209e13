import type { WorkflowTriggerContext } from "#gen/service/v1/workflow_pb.js";
import type { Role } from "../identity/caller.ts";
import type { Policies } from "../policy/policies.ts";
import { policyDenied } from "../policy/policy-decision.ts";

/**
 * Requires that the organization's policy allows a context: an agent without code works in an
 * environment from scratch.
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
