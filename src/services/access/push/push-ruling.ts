import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type ApprovalPush,
  ApprovalPushSchema,
  ApprovalSchema,
  ApprovalState as State,
} from "#gen/service/v1/approval_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { approvalContent, isPending } from "../../../domain/approval/approval.ts";
import { decidePush, pushRulesOf } from "../../../domain/approval/push-rules.ts";
import { pushRefused, tooManyApprovals } from "../../../domain/environment/environment-push.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import { policyDenied } from "../../../domain/policy/policy-decision.ts";
import { PUSH_RULES, pathOfPushRule, pushDeciders } from "../../../domain/policy/push-policy.ts";
import { isSameSubject } from "../../../domain/source/source-trust.ts";
import { digestOf, type FoundApproval } from "../../../store/approval/approval.ts";
import { findApprovalsOfPushes, updateCarriedOut } from "../../../store/approval/push-approval.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { WriteTransaction } from "../../../store/store.ts";
import { askApproval } from "../../approval/approval-asking.ts";
import { cancelApproval } from "../../approval/approval-end.ts";

/** Maximum number of pending approvals for the pushes of one environment. */
const MAX_PENDING = 32;

/** A push whose commit and place at the remote are known. */
export interface KnownPush {
  readonly environment: Environment;
  readonly content: MessageInitShape<typeof ApprovalPushSchema> & Pick<ApprovalPush, "branch" | "force">;
  /** The remote's default branch; empty for none. */
  readonly defaultBranch: string;
}

/** The decision on a push that is not denied. */
export type PushDecision =
  | { readonly isAllowed: true; readonly mayBeDefault: boolean }
  /** People have not decided yet. */
  | { readonly isAllowed: false; readonly approvalId: string };

/**
 * Decides on a push by the current rules. If they require an approval, finds or requests one for exactly this push.
 *
 * @throws PolicyDenied
 * @throws DomainError PUSH_REFUSED when people have denied it; LIMIT_REACHED
 */
export async function rulePush(
  tx: WriteTransaction,
  caller: Caller,
  { environment, content, defaultBranch }: KnownPush,
): Promise<PushDecision> {
  const policies = await findPolicies(tx.db, caller);
  const { agentPolicy } = policies.effective;
  const { branch, force: isForced } = content;
  const request = { branch, defaultBranch: defaultBranch || undefined, isForced };
  const { decision, rule } = decidePush(pushRulesOf(agentPolicy), request);
  const fieldPath = rule === undefined ? PUSH_RULES : pathOfPushRule(rule);
  if (decision === "deny") {
    const denied = policyDenied(policies, {
      fieldPath: PUSH_RULES,
      requested: { branch, force: isForced },
      allowed:
        rule === undefined
          ? "pushes that create or fast-forward a branch other than the default one"
          : `pushes to branches that ${fieldPath} does not deny`,
    });
    denied.decision.fieldPath = fieldPath;
    throw denied;
  }
  // The decision does not cover a branch that becomes the default branch in the meantime.
  const allowed = { isAllowed: true, mayBeDefault: branch === defaultBranch } as const;
  if (decision === "allow") return allowed;
  const asked = approvalContent({ case: "push", value: create(ApprovalPushSchema, content) });
  const { pending, same } = await findAsked(tx, caller, environment, digestOf(asked.requestJson));
  if (same?.state === State.APPROVED) return allowed;
  if (same?.state === State.DENIED) {
    const why = same.reason === "" ? "" : `: ${same.reason}`;
    throw pushRefused("approval_denied", `people have denied exactly this push (approval ${same.id})${why}`);
  }
  if (same) return { isAllowed: false, approvalId: same.id };
  if (pending.length >= MAX_PENDING) throw tooManyApprovals(MAX_PENDING);
  for (const other of pending.filter((each) => isOf(each, caller, branch)))
    await cancelApproval(tx, caller, other, "another push to the branch is asked for in its place");
  const approval = await askApproval(tx, caller, {
    asked,
    asker: {
      agentExecutionId: "",
      toolCallId: "",
      workflowExecutionId: "",
      workflowActionId: "",
      environmentId: environment.id,
    },
    creator: caller.subject,
    deciders: pushDeciders(agentPolicy?.pushRules?.rules[rule ?? -1]?.deciders),
    policyFieldPath: fieldPath,
    isShared: false,
  });
  return { isAllowed: false, approvalId: approval.id };
}

/** Marks an approved push as executed, so that its approval cannot be used again. */
export async function carryOut(
  tx: WriteTransaction,
  caller: Caller,
  { environment, content }: Pick<KnownPush, "environment" | "content">,
): Promise<void> {
  const { requestJson } = approvalContent({ case: "push", value: create(ApprovalPushSchema, content) });
  const { same } = await findAsked(tx, caller, environment, digestOf(requestJson));
  if (same?.state !== State.APPROVED) return;
  const after = clone(ApprovalSchema, same);
  after.carriedOutAt = timestampFromMs(tx.now);
  await updateCarriedOut(tx, caller, same, after);
}

/** Finds the pending approvals for pushes, and the caller's approval for the same push, if it has not ended. */
async function findAsked(
  tx: WriteTransaction,
  caller: Caller,
  { id }: Environment,
  digest: string,
): Promise<{ readonly pending: readonly FoundApproval[]; readonly same: FoundApproval | undefined }> {
  const all = await findApprovalsOfPushes(tx.db, caller, id);
  const isInTime = ({ expiresAt }: FoundApproval) => !expiresAt || timestampMs(expiresAt) > tx.now;
  const pending = all.filter((each) => isPending(each) && isInTime(each));
  const decided = all.filter(
    ({ state, carriedOutAt }) => (state === State.APPROVED && !carriedOutAt) || state === State.DENIED,
  );
  const isSame = (each: FoundApproval) =>
    each.digest === digest && isSameSubject(each.creator, caller.subject);
  return { pending, same: [...pending, ...decided].find(isSame) };
}

function isOf({ creator, requestJson }: FoundApproval, { subject }: Caller, branch: string): boolean {
  return isSameSubject(creator, subject) && JSON.parse(requestJson).branch === branch;
}
