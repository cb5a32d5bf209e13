import { toJson } from "@bufbuild/protobuf";
import { type ApprovalDeciders, ToolKind } from "#gen/service/v1/approval_pb.js";
import {
  type AgentApprovalPolicy,
  AgentApprovalPolicy_Effect as Effect,
  AgentApprovalPolicy_Origin as Origin,
  type AgentApprovalPolicy_Rule as Rule,
  AgentApprovalPolicy_RuleSchema as RuleSchema,
} from "#gen/service/v1/organization_pb.js";
import type { PolicyDecision } from "#gen/service/v1/policy_decision_pb.js";
import { valueUnusable } from "../error.ts";
import type { Policies } from "./policies.ts";
import { policyDenied } from "./policy-decision.ts";

export { Effect as ApprovalEffect, Origin as RunOrigin };

/** Path of the policy in OrganizationPolicies. */
const FIELD_PATH = "agentPolicy.approvals";

/** Path of the deciders of the approval steps of workflows. */
export const STEP_DECIDERS = `${FIELD_PATH}.steps.deciders`;

/** The kinds of tools that agents use without asking where no rule decides. */
const HARMLESS: ReadonlySet<ToolKind> = new Set([
  ToolKind.READ,
  ToolKind.SEARCH,
  ToolKind.THINK,
  ToolKind.EDIT,
]);

/** A tool call or question of an agent, and where the agent's run descends from. */
export interface ToolUse {
  /** Unspecified counts as OTHER. */
  readonly kind: ToolKind;
  /** Name of the tool; empty if the agent does not report one. */
  readonly tool: string;
  /** The subject that started the first run of the tree. */
  readonly origin: Origin;
}

/** The policy's ruling on a tool call. */
export interface ApprovalRuling {
  readonly effect: Effect;
  /** Path of the field that decided, in JSON names. */
  readonly fieldPath: string;
  readonly reason: string;
  /** The deciders; undefined for those who may send to the run. */
  readonly deciders: ApprovalDeciders | undefined;
  /** The decision for the error's details; undefined unless the call is denied. */
  readonly decision: PolicyDecision | undefined;
}

/** Returns the ruling of an organization's policy on a tool call. */
export function rulingOn(policies: Policies, asked: ToolUse): ApprovalRuling {
  const use = { ...asked, kind: asked.kind || ToolKind.OTHER };
  const rules = policies.effective.agentPolicy?.approvals?.rules ?? [];
  const index = rules.findIndex((rule) => matches(rule, use));
  const rule = rules[index];
  const fieldPath = rule ? pathOf(index) : FIELD_PATH;
  const { effect, reason } = rule ?? defaultFor(use);
  const decision = effect === Effect.DENY ? denial(policies, use, fieldPath, rule) : undefined;
  return { effect, fieldPath, reason, deciders: rule?.deciders, decision };
}

const pathOf = (index: number) => `${FIELD_PATH}.rules[${index}]`;

/** Returns the ruling when no rule matches: only runs that descend from a person's run ask for approval. */
function defaultFor({ kind, origin }: ToolUse): Pick<Rule, "effect" | "reason"> {
  if (origin === Origin.PERSON) return { effect: HARMLESS.has(kind) ? Effect.ALLOW : Effect.ASK, reason: "" };
  if (kind !== ToolKind.QUESTION) return { effect: Effect.ALLOW, reason: "" };
  return { effect: Effect.DENY, reason: "nobody is asked in a run that no person started" };
}

/** The kinds of tools, without questions. */
const TOOLS = [
  ToolKind.READ,
  ToolKind.EDIT,
  ToolKind.DELETE,
  ToolKind.MOVE,
  ToolKind.SEARCH,
  ToolKind.EXECUTE,
  ToolKind.FETCH,
  ToolKind.THINK,
  ToolKind.OTHER,
];

/**
 * Requires that a tree of runs may use every tool without asking. Otherwise a sub-agent that cannot ask
 * could use tools without the approval that the other runs of its tree need.
 * @throws PolicyDenied that names the field by which some tool needs approval or is denied
 */
export function requireNothingAsked(policies: Policies, origin: Origin): void {
  const rules = policies.effective.agentPolicy?.approvals?.rules ?? [];
  for (const kind of TOOLS) {
    // A rule that allows only some tools leaves the others to later rules; one that asks or denies settles it.
    const index = rules.findIndex(
      (rule) =>
        matches({ ...rule, tool: "" }, { kind, tool: "", origin }) &&
        (rule.effect !== Effect.ALLOW || /^\**$/.test(rule.tool)),
    );
    const rule = rules[index];
    if ((rule ?? defaultFor({ kind, tool: "", origin })).effect === Effect.ALLOW) continue;
    const error = policyDenied(policies, {
      fieldPath: FIELD_PATH,
      requested: { kind: ToolKind[kind] ?? "" },
      allowed: "sub-agents whose form can ask before they use a tool",
    });
    if (rule) pointAt(error.decision, pathOf(index), rule);
    throw error;
  }
}

function matches({ kinds, tool, origins }: Pick<Rule, "kinds" | "tool" | "origins">, use: ToolUse): boolean {
  const isOfKind = kinds.length === 0 ? use.kind !== ToolKind.QUESTION : kinds.includes(use.kind);
  const isOfOrigin = origins.length === 0 || origins.includes(use.origin);
  return isOfKind && isOfOrigin && (tool === "" || matchesPattern(tool, use.tool));
}

/** Returns whether a text matches a pattern in which `*` matches any characters. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [prefix = "", ...parts] = pattern.split("*");
  const suffix = parts.pop();
  if (suffix === undefined) return text === pattern;
  if (!text.startsWith(prefix)) return false;
  let position = prefix.length;
  for (const part of parts) {
    const found = text.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return text.length - suffix.length >= position && text.endsWith(suffix);
}

function denial(
  policies: Policies,
  { kind, tool }: ToolUse,
  fieldPath: string,
  rule: Rule | undefined,
): PolicyDecision {
  const requested = { kind: ToolKind[kind] ?? "", tool };
  const allowed = "tool calls that no rule denies";
  const { decision } = policyDenied(policies, { fieldPath: FIELD_PATH, requested, allowed });
  if (rule) pointAt(decision, fieldPath, rule);
  return decision;
}

/** Sets the rule as the deciding field and value of a decision, in place. */
function pointAt(decision: PolicyDecision, fieldPath: string, rule: Rule): void {
  decision.fieldPath = fieldPath;
  decision.valueInForce = JSON.stringify(toJson(RuleSchema, rule));
}

/** Returns the deciders that a policy names, with their paths in the request. */
export function decidersIn(policy: AgentApprovalPolicy | undefined) {
  const ofRules = (policy?.rules ?? []).map(({ deciders }, index) => ({
    field: `${pathOf(index)}.deciders`,
    deciders,
  }));
  return [...ofRules, { field: STEP_DECIDERS, deciders: policy?.steps?.deciders }];
}

/**
 * Requires that each rule of a policy can have an effect.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireMeaningfulRules(policy: AgentApprovalPolicy | undefined): void {
  for (const [index, { effect, kinds, deciders }] of (policy?.rules ?? []).entries()) {
    const field = pathOf(index);
    if (deciders && effect !== Effect.ASK)
      throw valueUnusable(`${field}.deciders`, `${field}.deciders has an effect only with EFFECT_ASK`);
    if (kinds.includes(ToolKind.QUESTION) && effect === Effect.ALLOW)
      throw valueUnusable(`${field}.effect`, `${field}.effect must ask or deny, since it is about questions`);
  }
}
