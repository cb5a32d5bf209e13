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
import { policyDenied } from "./policy-decision.ts";

/**
 * Maximum number of concurrent sub-agents of an execution where the policy says 0 (contract,
 * AgentPolicy).
 */
const DEFAULT_SUBAGENTS = 5;

/**
 * Requires that the organization's policy allows an agent. An empty id is always allowed: it
 * selects the default agent.
 * @throws PolicyDenied
 */
export function requireAgentAllowed(policies: Policies, agentId: string): void {
  const allowed = policies.effective.agentPolicy?.allowedAgentIds ?? [];
  if (agentId === "" || allowed.length === 0) return;
  // Policies store ids as they were written; ids of requests are already in lower case here.
  if (allowed.some((id) => id.toLowerCase() === agentId.toLowerCase())) return;
  throw policyDenied(policies, {
    fieldPath: "agentPolicy.allowedAgentIds",
    requested: agentId,
    allowed: `only the agents ${allowed.join(", ")}`,
  });
}

/**
 * Requires that the organization's policy allows the settings of the alternative agent; an
 * unspecified setting is not checked.
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
 * Requires that the organization's policy allows the mode of an execution.
 * @throws PolicyDenied for the mode that turns inputs into goals, where goals are forbidden
 */
export function requireModeAllowed(policies: Policies, mode: AgentMode): void {
  if (mode === AgentMode.GOAL) requireGoalsAllowed(policies);
}

/**
 * Requires that goals are allowed, before an execution gets a goal or resumes one.
 * @throws PolicyDenied
 */
export function requireGoalsAllowed(policies: Policies): void {
  if (!policies.effective.agentPolicy?.goalModeDisabled) return;
  throw policyDenied(policies, { fieldPath: "agentPolicy.goalModeDisabled", allowed: "runs without a goal" });
}

/**
 * Requires that agents may use the Model Context Protocol.
 * @throws PolicyDenied
 */
export function requireMcpAllowed(policies: Policies): void {
  if (!policies.effective.agentPolicy?.mcpDisabled) return;
  throw policyDenied(policies, {
    fieldPath: "agentPolicy.mcpDisabled",
    allowed: "agents without the Model Context Protocol",
  });
}

/**
 * Requires that an execution may start one more sub-agent.
 * @param count number of its sub-agents that have not stopped
 * @throws PolicyDenied
 */
export function requireSubagentQuota(policies: Policies, count: number): void {
  const max = policies.effective.agentPolicy?.maxSubagentsPerEnvironment || DEFAULT_SUBAGENTS;
  if (count < max) return;
  throw policyDenied(policies, {
    fieldPath: "agentPolicy.maxSubagentsPerEnvironment",
    requested: count + 1,
    allowed: `${max} sub-agents of a run at a time`,
  });
}

/**
 * Returns whether a caller may read every agent execution: administrators always, everybody else
 * where conversations are shared. Otherwise {@link mayReadAgentExecution} decides.
 */
export function mayReadEveryAgentExecution({ effective }: Policies, role: Role): boolean {
  if (role === "administrator") return true;
  if (role !== "member" && role !== "service_account") return false;
  return effective.agentPolicy?.conversationSharingPolicy === ConversationSharingPolicy.ORGANIZATION;
}

/**
 * Returns whether members of a group may use the agent executions that are shared with it: yes, unless
 * the organization has turned the sharing of conversations off.
 */
export function areAgentExecutionsShareable({ effective }: Policies): boolean {
  return effective.agentPolicy?.conversationSharingPolicy !== ConversationSharingPolicy.DISABLED;
}

/** Requires that agent executions may be shared with groups. @throws PolicyDenied */
export function requireAgentExecutionsShareable(policies: Policies): void {
  if (areAgentExecutionsShareable(policies)) return;
  throw policyDenied(policies, {
    fieldPath: "agentPolicy.conversationSharingPolicy",
    allowed: "agent runs that are not shared",
  });
}

/** The subjects that an agent execution belongs to. */
export interface AgentExecutionOwners {
  readonly creator: Pick<Subject, "id" | "principal"> | undefined;
  /** Id of the runner that the execution is on; empty for none. */
  readonly runnerId: string;
}

/**
 * Returns whether a caller may read an agent execution as its creator or as the runner that it is on.
 * {@link mayReadEveryAgentExecution} and groups that it is shared with give access besides.
 */
export function mayReadAgentExecution(
  policies: Policies,
  caller: Caller,
  { creator, runnerId }: AgentExecutionOwners,
): boolean {
  const { id, principal } = caller.subject;
  if (caller.role === "runner") return runnerId === id;
  if (creator?.id === id && creator.principal === principal) return true;
  return mayReadEveryAgentExecution(policies, caller.role);
}

function requireModelAllowed(policies: Policies, model: ExtAgentModel): void {
  const name = ExtAgentModelSchema.value[model]?.name ?? "";
  const states = policies.effective.agentPolicy?.extAgentModelPolicy?.modelStates ?? {};
  if (model === 0 || !Object.hasOwn(states, name) || states[name] !== ExtAgentModelPolicyState.DISABLED)
    return;
  const allowed = "models that are not disabled";
  throw policyDenied(policies, { fieldPath: "agentPolicy.extAgentModelPolicy", requested: name, allowed });
}

function requireEffortAllowed(policies: Policies, effort: ExtAgentReasoningEffort): void {
  const allowed = policies.effective.agentPolicy?.allowedExtAgentReasoningEfforts ?? [];
  if (effort === 0 || allowed.length === 0 || allowed.includes(effort)) return;
  const nameOf = (each: ExtAgentReasoningEffort) => ExtAgentReasoningEffortSchema.value[each]?.name ?? "";
  throw policyDenied(policies, {
    fieldPath: "agentPolicy.allowedExtAgentReasoningEfforts",
    requested: nameOf(effort),
    allowed: `only ${allowed.map(nameOf).join(", ")}`,
  });
}

function requireTierAllowed(policies: Policies, tier: ExtAgentServiceTier): void {
  const allowed = policies.effective.agentPolicy?.allowedExtAgentServiceTiers ?? [];
  if (tier === 0 || allowed.length === 0 || allowed.includes(tier)) return;
  const nameOf = (each: ExtAgentServiceTier) => ExtAgentServiceTierSchema.value[each]?.name ?? "";
  throw policyDenied(policies, {
    fieldPath: "agentPolicy.allowedExtAgentServiceTiers",
    requested: nameOf(tier),
    allowed: `only ${allowed.map(nameOf).join(", ")}`,
  });
}

/** Requires that agents may run on local runners. @throws PolicyDenied */
export function requireLocalRunnersAllowed(policies: Policies): void {
  if (policies.effective.allowLocalRunners) return;
  const allowed = "runs on runners that are not local";
  throw policyDenied(policies, { fieldPath: "allowLocalRunners", requested: true, allowed });
}
