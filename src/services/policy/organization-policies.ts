import type { Policies as LeasePolicies } from "#gen/runner/v1/work_pb.js";
import type { AgentApprovalPolicy, PushRules } from "#gen/service/v1/organization_pb.js";
import type { UpdateOrganizationPoliciesRequest } from "#gen/service/v1/organization_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { requireMcpAllowed } from "../../domain/policy/agent-policy.ts";
import { decidersIn, requireMeaningfulRules } from "../../domain/policy/approval-policy.ts";
import { requireEgressKnown, requireMeaningfulEgress } from "../../domain/policy/egress-policy.ts";
import { type ConfiguredPolicies, effectivePolicies } from "../../domain/policy/policies.ts";
import { requireEnterprise, updatedPolicies } from "../../domain/policy/policy-update.ts";
import {
  decidersOfPushes,
  requireMeaningfulPushRules,
  requirePushRulesKnown,
} from "../../domain/policy/push-policy.ts";
import { requireRetentionKnown } from "../../domain/policy/retention.ts";
import { leasePolicies } from "../../domain/policy/runner-policies.ts";
import { requireSecurityPolicyAssignable } from "../../domain/policy/security-policy.ts";
import { EGRESS_LEVEL, mayStore, PUSH_RULES_LEVEL, RETENTION_LEVEL } from "../../store/feature-level.ts";
import { findGroup } from "../../store/identity/group.ts";
import { isEnterprise } from "../../store/policy/enterprise.ts";
import { findPolicies, findSetPolicies, updatePolicies } from "../../store/policy/organization-policies.ts";
import { findSecurityPolicy } from "../../store/policy/security-policy.ts";
import type { Scope, Snapshot, Store, WriteTransaction } from "../../store/store.ts";
import { createHook } from "../call/hook.ts";
import { requireAllSatisfiable } from "./satisfiable-deciders.ts";

/** The hook for changed policies of leases. It gets those before and after the change. */
export const leasePoliciesChanged = createHook<
  [tx: WriteTransaction, scope: Scope, before: LeasePolicies, after: LeasePolicies]
>("changes of policies that runners keep");

/** The transaction or snapshot in which a change of policies is checked. */
export type PolicySnapshot = Snapshot & Pick<WriteTransaction, "featureLevel">;

/**
 * Sets policies of the caller's organization.
 *
 * @throws DomainError as {@link changedPolicies}
 */
export async function setPolicies(
  tx: WriteTransaction,
  caller: Caller,
  req: UpdateOrganizationPoliciesRequest,
): Promise<void> {
  const { before, after } = await changedPolicies(tx, caller, req);
  await updatePolicies(tx, caller, before, after);
  const leased = [
    await leasePoliciesOf(tx, caller, before),
    await leasePoliciesOf(tx, caller, after),
  ] as const;
  await leasePoliciesChanged.call(tx, caller, ...leased);
}

/**
 * Requires that a caller may use the Model Context Protocol. An organization can disable it for its agents, which are
 * recognized by the tokens of environments; all other callers may use it.
 * @throws PolicyDenied
 */
export async function requireMayUseMcp({ reader }: Pick<Store, "reader">, caller: Caller): Promise<void> {
  if (caller.role === "environment") requireMcpAllowed(await findPolicies(reader, caller));
}

/** Returns an organization's policies for leases on environments without a security policy. */
async function leasePoliciesOf(
  tx: PolicySnapshot,
  scope: Scope,
  configured: ConfiguredPolicies,
): Promise<LeasePolicies> {
  const policies = effectivePolicies(scope.organizationId, configured);
  const { securityPolicyId } = policies.effective;
  const securityPolicy = securityPolicyId
    ? await findSecurityPolicy(tx.db, scope, securityPolicyId)
    : undefined;
  return leasePolicies(policies, securityPolicy, false);
}

/**
 * Returns the policies of the caller's organization before and after a change, without storing it.
 *
 * @throws DomainError FIELD_MASK_INVALID, VALUE_UNUSABLE, NOT_FOUND, NOT_ENTERPRISE or
 *   SECURITY_POLICY_UNASSIGNABLE
 */
export async function changedPolicies(
  tx: PolicySnapshot,
  caller: Caller,
  req: UpdateOrganizationPoliciesRequest,
): Promise<{ before: ConfiguredPolicies; after: ConfiguredPolicies }> {
  const before = await findSetPolicies(tx.db, caller);
  const { id, principal } = caller.subject;
  const after = updatedPolicies(before, req, { id, principal, at: tx.now });
  if (req.archiveEnvironmentsAfter) {
    requireEnterprise("archiveEnvironmentsAfter", await isEnterprise(tx.db, caller));
  }
  if (req.securityPolicyId) {
    const securityPolicy = await findSecurityPolicy(tx.db, caller, req.securityPolicyId);
    if (!securityPolicy) throw notFound("security policy");
    requireSecurityPolicyAssignable(securityPolicy);
  }
  await requireGroupExists(tx, caller, req.agentPolicy?.scmToolsAllowedGroupId);
  await requireApprovalsPossible(tx, caller, req.agentPolicy?.approvals);
  await requirePushesPossible(tx, caller, req.agentPolicy?.pushRules);
  if (req.egress) {
    requireEgressKnown(mayStore(tx, EGRESS_LEVEL));
    requireMeaningfulEgress(req.egress);
  }
  if (req.retention) requireRetentionKnown(mayStore(tx, RETENTION_LEVEL));
  // No operation creates one yet, so none can exist. Storing the id would suggest that the policy is in force.
  if (req.securityAgentPolicy?.endpointSecurity?.customerSecretId) throw notFound("secret");
  return { before, after };
}

/**
 * Requires that approval rules can have an effect.
 * @throws DomainError VALUE_UNUSABLE for rules without an effect, and for deciders that the members could not satisfy
 */
async function requireApprovalsPossible(
  tx: PolicySnapshot,
  scope: Scope,
  policy: AgentApprovalPolicy | undefined,
): Promise<void> {
  if (!policy) return;
  requireMeaningfulRules(policy);
  await requireAllSatisfiable(tx, scope, decidersIn(policy));
}

/**
 * Requires that push rules can have an effect; the subject that asks for a push cannot decide it.
 * @throws DomainError VALUE_UNUSABLE as requireApprovalsPossible
 */
async function requirePushesPossible(
  tx: PolicySnapshot,
  scope: Scope,
  policy: PushRules | undefined,
): Promise<void> {
  if (!policy) return;
  requirePushRulesKnown(mayStore(tx, PUSH_RULES_LEVEL));
  requireMeaningfulPushRules(policy);
  await requireAllSatisfiable(tx, scope, decidersOfPushes(policy));
}

/** Requires that the group allowed to use SCM tools exists; otherwise nobody could. @throws DomainError NOT_FOUND */
async function requireGroupExists(
  tx: PolicySnapshot,
  scope: Scope,
  groupId: string | undefined,
): Promise<void> {
  if (groupId && !(await findGroup(tx.db, scope, groupId.toLowerCase()))) throw notFound("group");
}
