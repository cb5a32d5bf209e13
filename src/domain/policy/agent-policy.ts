import {
  AgentMode,
  type ExtAgentModel,
  ExtAgentModelSchema,
  type ExtAgentReasoningEffort,
  ExtAgentReasoningEffortSchema,
  type ExtAgentServiceTier,
  ExtAgentServiceTierSchema,
  type ExtAgentSettings,
} from "#gen/service/v1/agent_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { ConversationSharingPolicy, ExtAgentModelPolicyState } from "#gen/service/v1/organization_pb.js";
import type { Caller, Role } from "../identity/caller.ts";
import type { Policies } from "./policies.ts";
import { denied } from "./policy-decision.ts";

/** Sub-agents of a run at a time where the policy says 0 (interface specification, AgentPolicy). */
const DEFAULT_SUBAGENTS = 5;

/**
 * Holds the choice of an agent against the organization's policy. No choice is
 * always allowed: the default agent runs then.
 *
 * @throws PolicyDenied
 */
export function requireAgentAllowed(policies: Policies, agentId: string): void {
  const allowed = policies.inForce.agentPolicy?.allowedAgentIds ?? [];
  if (agentId === "" || allowed.length === 0) return;
  // Ids of a policy are kept as they were written; those of requests are in lower case by now.
  if (allowed.some((id) => id.toLowerCase() === agentId.toLowerCase())) return;
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
export function requireAgentSettingsAllowed(
  policies: Policies,
  { model, reasoningEffort, serviceTier }: ExtAgentSettings,
): void {
  requireModelAllowed(policies, model);
  requireEffortAllowed(policies, reasoningEffort);
  requireTierAllowed(policies, serviceTier);
}

/**
 * Holds the mode of a run against the organization's policy.
 *
 * @throws PolicyDenied for the mode that makes goals of inputs, where goals are forbidden
 */
export function requireModeAllowed(policies: Policies, mode: AgentMode): void {
  if (mode === AgentMode.GOAL) requireGoalsAllowed(policies);
}

/**
 * Refuses to give a run a goal, or to take one up again, where goals are forbidden.
 *
 * @throws PolicyDenied
 */
export function requireGoalsAllowed(policies: Policies): void {
  if (!policies.inForce.agentPolicy?.goalModeDisabled) return;
  throw denied(policies, { fieldPath: "agentPolicy.goalModeDisabled", allowed: "runs without a goal" });
}

/**
 * Holds one more sub-agent of a run against the organization's policy.
 *
 * @param count how many sub-agents of the run have not stopped
 * @throws PolicyDenied
 */
export function requireSubagentQuota(policies: Policies, count: number): void {
  const most = policies.inForce.agentPolicy?.maxSubagentsPerEnvironment || DEFAULT_SUBAGENTS;
  if (count < most) return;
  throw denied(policies, {
    fieldPath: "agentPolicy.maxSubagentsPerEnvironment",
    asked: count + 1,
    allowed: `${most} sub-agents of a run at a time`,
  });
}

/**
 * Whether a caller may read the run of whatever creator: its administrators
 * always, everybody else where conversations are shared. Otherwise only what
 * {@link mayRead} says.
 */
export function readsEveryAgentExecution({ inForce }: Policies, role: Role): boolean {
  if (role === "administrator") return true;
  if (role !== "member" && role !== "service_account") return false;
  return inForce.agentPolicy?.conversationSharingPolicy === ConversationSharingPolicy.ORGANIZATION;
}

/** Whose a run is, and where it is. */
export interface AgentExecutionOwners {
  readonly creator: Subject | undefined;
  /** Id of the runner that the run is on; empty for none. */
  readonly runnerId: string;
}

/** Whether a caller may read a run: its creator, and the runner that it is on, besides {@link readsEveryAgentExecution}. */
export function mayRead(
  policies: Policies,
  caller: Caller,
  { creator, runnerId }: AgentExecutionOwners,
): boolean {
  const { id, principal } = caller.subject;
  if (caller.role === "runner") return runnerId === id;
  if (creator?.id === id && creator.principal === principal) return true;
  return readsEveryAgentExecution(policies, caller.role);
}

function requireModelAllowed(policies: Policies, model: ExtAgentModel): void {
  const name = ExtAgentModelSchema.value[model]?.name ?? "";
  const states = policies.inForce.agentPolicy?.extAgentModelPolicy?.modelStates ?? {};
  if (model === 0 || !Object.hasOwn(states, name) || states[name] !== ExtAgentModelPolicyState.DISABLED)
    return;
  const allowed = "models that are not disabled";
  throw denied(policies, { fieldPath: "agentPolicy.extAgentModelPolicy", asked: name, allowed });
}

function requireEffortAllowed(policies: Policies, effort: ExtAgentReasoningEffort): void {
  const allowed = policies.inForce.agentPolicy?.allowedExtAgentReasoningEfforts ?? [];
  if (effort === 0 || allowed.length === 0 || allowed.includes(effort)) return;
  const nameOf = (each: ExtAgentReasoningEffort) => ExtAgentReasoningEffortSchema.value[each]?.name ?? "";
  throw denied(policies, {
    fieldPath: "agentPolicy.allowedExtAgentReasoningEfforts",
    asked: nameOf(effort),
    allowed: `only ${allowed.map(nameOf).join(", ")}`,
  });
}

function requireTierAllowed(policies: Policies, tier: ExtAgentServiceTier): void {
  const allowed = policies.inForce.agentPolicy?.allowedExtAgentServiceTiers ?? [];
  if (tier === 0 || allowed.length === 0 || allowed.includes(tier)) return;
  const nameOf = (each: ExtAgentServiceTier) => ExtAgentServiceTierSchema.value[each]?.name ?? "";
  throw denied(policies, {
    fieldPath: "agentPolicy.allowedExtAgentServiceTiers",
    asked: nameOf(tier),
    allowed: `only ${allowed.map(nameOf).join(", ")}`,
  });
}
