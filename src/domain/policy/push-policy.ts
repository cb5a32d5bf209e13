import { clone, create } from "@bufbuild/protobuf";
import { type ApprovalDeciders, ApprovalDecidersSchema } from "#gen/service/v1/approval_pb.js";
import { AgentApprovalPolicy_Effect as Effect, type PushRules } from "#gen/service/v1/organization_pb.js";
import { phaseUnsuitable, valueUnusable } from "../error.ts";
import { branchNameProblem } from "../source/git-branch-name.ts";

/** Path of the policy in OrganizationPolicies. */
export const PUSH_RULES = "agentPolicy.pushRules";

/**
 * Requires that every server knows push rules; servers of the previous release would lose them.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requirePushRulesKnown(areKnown: boolean): void {
  if (areKnown) return;
  const message = `${PUSH_RULES} can be set once every server runs this release`;
  throw phaseUnsuitable("installation", "UPGRADING", message);
}

/** Returns the path of a rule of the policy, in JSON names. */
export function pathOfPushRule(index: number): string {
  return `${PUSH_RULES}.rules[${index}]`;
}

/** Returns the deciders of a push, which never include the subject that asks for it. @param chosen the rule's deciders */
export function pushDeciders(chosen: ApprovalDeciders | undefined): ApprovalDeciders {
  const deciders = chosen ? clone(ApprovalDecidersSchema, chosen) : create(ApprovalDecidersSchema);
  deciders.excludesStarter = true;
  return deciders;
}

/** Returns the deciders of the rules that ask, with their paths in the request. */
export function decidersOfPushes({ rules }: PushRules) {
  return [...rules.entries()].flatMap(([index, { effect, deciders }]) =>
    effect === Effect.ASK
      ? [{ field: `${pathOfPushRule(index)}.deciders`, deciders: pushDeciders(deciders) }]
      : [],
  );
}

/**
 * Requires that each rule can have an effect.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireMeaningfulPushRules({ rules }: PushRules): void {
  for (const [index, { branches, effect, deciders }] of rules.entries()) {
    const path = pathOfPushRule(index);
    if (deciders && effect !== Effect.ASK)
      throw valueUnusable(`${path}.deciders`, `${path}.deciders has an effect only with EFFECT_ASK`);
    for (const [place, pattern] of branches.entries()) {
      const problem = patternProblem(pattern);
      const field = `${path}.branches[${place}]`;
      if (problem !== undefined)
        throw valueUnusable(field, `${field} matches no branch: git allows no name that ${problem}`);
    }
  }
}

/** Returns why a pattern cannot match any branch name; undefined if it can. */
function patternProblem(pattern: string): string | undefined {
  if (pattern.startsWith("refs/")) return "begins with refs/, which is written without it";
  return branchNameProblem(pattern.replaceAll(/\*+/g, "x"));
}
