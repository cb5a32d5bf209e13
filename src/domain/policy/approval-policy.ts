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
  /** Name of the tool; empty where the agent tells none. */
  readonly tool: string;
  /** Who started the first run of the tree. */
  readonly origin: Origin;
}

/** What the policy says of a tool call. */
export interface ApprovalRuling {
  readonly effect: Effect;
  /** Path of the field that decided, in JSON names. */
  readonly fieldPath: string;
  readonly reason: string;
  /** Who decides; undefined for whoever may send to the run. */
  readonly deciders: ApprovalDeciders | undefined;
  /** The decision as errors tell it; undefined unless it is denied. */
  readonly decision: PolicyDecision | undefined;
}

/** Returns what an organization's policy says of a tool call. */
export function rulingOn(policies: Policies, asked: ToolUse): ApprovalRuling {
  const use = { ...asked, kind: asked.kind || ToolKind.OTHER };
  const rules = policies.effective.agentPolicy?.approvals?.rules ?? [];
  const index = rules.findIndex((rule) => matches(rule, use));
  const rule = rules[index];
  const fieldPath = rule ? `${FIELD_PATH}.rules[${index}]` : FIELD_PATH;
  const { effect, reason } = rule ?? defaultFor(use);
  const decision = effect === Effect.DENY ? denial(policies, use, fieldPath, rule) : undefined;
  return { effect, fieldPath, reason, deciders: rule?.deciders, decision };
}

/** What holds without a policy: only runs that descend from a person's ask anybody. */
function defaultFor({ kind, origin }: ToolUse): Pick<Rule, "effect" | "reason"> {
  if (origin === Origin.PERSON) return { effect: HARMLESS.has(kind) ? Effect.ALLOW : Effect.ASK, reason: "" };
  if (kind !== ToolKind.QUESTION) return { effect: Effect.ALLOW, reason: "" };
  return { effect: Effect.DENY, reason: "nobody is asked in a run that no person started" };
}

function matches({ kinds, tool, origins }: Rule, use: ToolUse): boolean {
  const isOfKind = kinds.length === 0 ? use.kind !== ToolKind.QUESTION : kinds.includes(use.kind);
  const isOfOrigin = origins.length === 0 || origins.includes(use.origin);
  return isOfKind && isOfOrigin && (tool === "" || matchesPattern(tool, use.tool));
}

/** Returns whether a text matches a pattern in which `*` stands for any characters. */
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
  decision.fieldPath = fieldPath;
  if (rule) decision.valueInForce = JSON.stringify(toJson(RuleSchema, rule));
  return decision;
}

/** The deciders that a policy names, with their paths in the request. */
export function decidersIn(policy: AgentApprovalPolicy | undefined) {
  return (policy?.rules ?? []).map(({ deciders }, index) => ({
    field: `${FIELD_PATH}.rules[${index}].deciders`,
    deciders,
  }));
}

/**
 * Requires that each rule of a policy can have an effect.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireMeaningfulRules(policy: AgentApprovalPolicy | undefined): void {
  for (const [index, { effect, kinds, deciders }] of (policy?.rules ?? []).entries()) {
    const field = `${FIELD_PATH}.rules[${index}]`;
    if (deciders && effect !== Effect.ASK)
      throw valueUnusable(`${field}.deciders`, `${field}.deciders has an effect with EFFECT_ASK only`);
    if (kinds.includes(ToolKind.QUESTION) && effect === Effect.ALLOW)
      throw valueUnusable(`${field}.effect`, `${field}.effect must ask or deny, since it is about questions`);
  }
}
