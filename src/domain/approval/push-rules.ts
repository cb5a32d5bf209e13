import { type AgentPolicy, AgentApprovalPolicy_Effect as Effect } from "#gen/service/v1/organization_pb.js";

/** A rule of an organization about pushes to some branches. */
export interface PushRule {
  /**
   * Patterns of branches, at least one: `*` matches any characters except `/`, `**` any characters,
   * and every other character only itself.
   */
  readonly branches: readonly string[];
  readonly decision: PushDecision;
  /** True for a rule that also covers forced pushes. A rule that denies covers them in any case. */
  readonly force: boolean;
}

/** `ask`: people approve it first. */
export type PushDecision = "allow" | "ask" | "deny";

/** Returns the rules of a policy; none where it has none. */
export function pushRulesOf(policy: Pick<AgentPolicy, "pushRules"> | undefined): readonly PushRule[] {
  return (policy?.pushRules?.rules ?? []).map(({ branches, effect, force }) => ({
    branches,
    force,
    decision: effect === Effect.ALLOW ? "allow" : effect === Effect.ASK ? "ask" : "deny",
  }));
}

/** A requested push. */
export interface PushRequest {
  readonly branch: string;
  /** The branch that the remote's HEAD names; undefined where it names none. */
  readonly defaultBranch: string | undefined;
  /** True for a forced push, which would rewrite the branch. */
  readonly isForced: boolean;
}

/** The decision, with the index of the rule that made it; undefined where none did. */
export interface PushRuling {
  readonly decision: PushDecision;
  readonly rule: number | undefined;
}

/**
 * Returns the decision on a push, made by the first rule that covers it. Without such a rule, a push may
 * create or fast-forward any branch except the default one. A rule that allows or asks covers the
 * default branch only if it names the branch literally, so that `**` does not open it.
 */
export function decidePush(rules: readonly PushRule[], request: PushRequest): PushRuling {
  const rule = rules.findIndex((each) => isAbout(each, request));
  const found = rules[rule];
  if (found) return { decision: found.decision, rule };
  const isRefused = request.isForced || request.branch === request.defaultBranch;
  return { decision: isRefused ? "deny" : "allow", rule: undefined };
}

function isAbout(
  { branches, decision, force }: PushRule,
  { branch, defaultBranch, isForced }: PushRequest,
): boolean {
  // A rule that denies pushes to a branch also denies forced ones.
  if (isForced && !force && decision !== "deny") return false;
  if (branch === defaultBranch && decision !== "deny") return branches.includes(branch);
  return branches.some((pattern) => matchesBranch(pattern, branch));
}

/** Returns whether a pattern matches the whole name of a branch, in time proportional to the product of their lengths. */
export function matchesBranch(pattern: string, branch: string): boolean {
  const tokens = pattern.match(/\*\*+|./gsu) ?? [];
  const text = [...branch];
  // Whether the tokens so far match the first `length` characters.
  let reached = text.reduce<boolean[]>((all) => [...all, false], [true]);
  for (const token of tokens) reached = advance(reached, token, text);
  return reached[text.length] ?? false;
}

function advance(reached: readonly boolean[], token: string, text: readonly string[]): boolean[] {
  const next: boolean[] = [];
  for (let length = 0; length <= text.length; length += 1) {
    const last = text[length - 1];
    const isWild = token.startsWith("**") || (token === "*" && last !== "/");
    if (token.startsWith("*")) {
      next[length] = (reached[length] ?? false) || (isWild && (next[length - 1] ?? false));
    } else {
      next[length] = last === token && (reached[length - 1] ?? false);
    }
  }
  return next;
}
