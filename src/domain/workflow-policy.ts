import {
  type ExtAgentModel,
  ExtAgentModelSchema,
  type ExtAgentReasoningEffort,
  ExtAgentReasoningEffortSchema,
  type ExtAgentServiceTier,
  ExtAgentServiceTierSchema,
  type ExtAgentSettings,
} from "#gen/service/v1/agent_pb.js";
import { ExtAgentModelPolicyState } from "#gen/service/v1/organization_pb.js";
import type { WorkflowTriggerContext } from "#gen/service/v1/workflow_pb.js";
import type { Role } from "./caller.ts";
import type { Policies } from "./policies.ts";
import { denied } from "./policy-decision.ts";

/**
 * Holds the choice of an agent against the organization's policy. No choice is
 * always allowed: the default agent runs then.
 *
 * @throws PolicyDenied
 */
export function refuseAgent(policies: Policies, agentId: string): void {
  const allowed = policies.inForce.agentPolicy?.allowedAgentIds ?? [];
  if (agentId === "" || allowed.length === 0 || allowed.includes(agentId)) return;
  throw denied(policies, {
    fieldPath: "agentPolicy.allowedAgentIds",
    asked: agentId,
    allowed: `only the agents ${allowed.join(", ")}`,
  });
}

/**
 * The same for the settings of the alternative agent; what is unspecified is no choice.
 *
 * @throws PolicyDenied
 */
export function refuseAgentSettings(
  policies: Policies,
  { model, reasoningEffort, serviceTier }: ExtAgentSettings,
): void {
  refuseModel(policies, model);
  refuseEffort(policies, reasoningEffort);
  refuseTier(policies, serviceTier);
}

/**
 * Holds a context against the organization's policy: an agent without code works
 * in an environment from scratch.
 *
 * @throws PolicyDenied
 */
export function refuseContext(policies: Policies, { context }: WorkflowTriggerContext, role: Role): void {
  if (!policies.inForce.disableFromScratch || role === "administrator" || context.case !== "agent") return;
  const allowed = "members to run over projects and repositories only";
  throw denied(policies, { fieldPath: "disableFromScratch", allowed });
}

function refuseModel(policies: Policies, model: ExtAgentModel): void {
  const name = ExtAgentModelSchema.value[model]?.name ?? "";
  const states = policies.inForce.agentPolicy?.extAgentModelPolicy?.modelStates ?? {};
  if (model === 0 || !Object.hasOwn(states, name) || states[name] !== ExtAgentModelPolicyState.DISABLED)
    return;
  const allowed = "models that are not disabled";
  throw denied(policies, { fieldPath: "agentPolicy.extAgentModelPolicy", asked: name, allowed });
}

function refuseEffort(policies: Policies, effort: ExtAgentReasoningEffort): void {
  const allowed = policies.inForce.agentPolicy?.allowedExtAgentReasoningEfforts ?? [];
  if (effort === 0 || allowed.length === 0 || allowed.includes(effort)) return;
  const nameOf = (each: ExtAgentReasoningEffort) => ExtAgentReasoningEffortSchema.value[each]?.name ?? "";
  throw denied(policies, {
    fieldPath: "agentPolicy.allowedExtAgentReasoningEfforts",
    asked: nameOf(effort),
    allowed: `only ${allowed.map(nameOf).join(", ")}`,
  });
}

function refuseTier(policies: Policies, tier: ExtAgentServiceTier): void {
  const allowed = policies.inForce.agentPolicy?.allowedExtAgentServiceTiers ?? [];
  if (tier === 0 || allowed.length === 0 || allowed.includes(tier)) return;
  const nameOf = (each: ExtAgentServiceTier) => ExtAgentServiceTierSchema.value[each]?.name ?? "";
  throw denied(policies, {
    fieldPath: "agentPolicy.allowedExtAgentServiceTiers",
    asked: nameOf(tier),
    allowed: `only ${allowed.map(nameOf).join(", ")}`,
  });
}
