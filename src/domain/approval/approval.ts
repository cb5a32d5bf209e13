import type { JsonValue } from "@bufbuild/protobuf";
import { clone, create, toJson } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Approval,
  type Approval_Asker,
  type ApprovalDeciders,
  ApprovalDecisionSchema,
  type ApprovalOption,
  ApprovalOutcomeSchema,
  type ApprovalPush,
  ApprovalPushSchema,
  type ApprovalQuestion,
  ApprovalQuestionSchema,
  ApprovalSchema,
  type ApprovalStep,
  ApprovalStepSchema,
  type ApprovalToolCall,
  ApprovalToolCallSchema,
  ApprovalKind as Kind,
  ApprovalOption_Kind as OptionKind,
  ApprovalState as State,
} from "#gen/service/v1/approval_pb.js";
import {
  type DecideApprovalRequest,
  DecideApprovalRequest_Decision as Decision,
} from "#gen/service/v1/approval_service_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { approvalChanged, permissionDenied, phaseUnsuitable, valueUnusable } from "../error.ts";
import type { Caller } from "../identity/caller.ts";
import { isJsonObject } from "../json-object.ts";
import { mayDecide } from "../policy/approval-deciders.ts";

/** Default time after which a pending approval is denied: 24 hours. */
export const DEFAULT_LIFETIME_MS = 86_400_000;

/** Maximum length of the title taken from a question, in characters (as ApprovalToolCall.title in the contract). */
const MAX_TITLE_CHARACTERS = 512;

/** What is asked for: a tool call, a question, a step or a push. */
export type RequestedApproval =
  | { readonly case: "toolCall"; readonly value: ApprovalToolCall }
  | { readonly case: "question"; readonly value: ApprovalQuestion }
  | { readonly case: "step"; readonly value: ApprovalStep }
  | { readonly case: "push"; readonly value: ApprovalPush };

/** What is asked for, in the form that is stored and decided. */
export interface ApprovalContent {
  readonly kind: Kind;
  readonly title: string;
  /** Canonical JSON. */
  readonly requestJson: string;
}

/** Returns what is asked for in the form that is stored and decided. */
export function approvalContent(asked: RequestedApproval): ApprovalContent {
  switch (asked.case) {
    case "toolCall": {
      const requestJson = canonicalJson(toJson(ApprovalToolCallSchema, asked.value));
      return { kind: Kind.TOOL_CALL, title: asked.value.title, requestJson };
    }
    case "question": {
      const requestJson = canonicalJson(toJson(ApprovalQuestionSchema, asked.value));
      return { kind: Kind.QUESTION, title: titleOf(asked.value.message), requestJson };
    }
    case "step": {
      const requestJson = canonicalJson(toJson(ApprovalStepSchema, asked.value));
      return { kind: Kind.STEP, title: titleOf(asked.value.message), requestJson };
    }
    case "push": {
      const { remote, branch, pullRequest } = asked.value;
      const requestJson = canonicalJson(toJson(ApprovalPushSchema, asked.value));
      const what = pullRequest ? `Push ${branch} and open a pull request` : `Push ${branch}`;
      return { kind: Kind.PUSH, title: titleOf(`${what}: ${remote}`), requestJson };
    }
  }
}

function titleOf(message: string): string {
  const [line = ""] = message.split("\n");
  return [...line].slice(0, MAX_TITLE_CHARACTERS).join("");
}

/** The asker; it has an environment only if it asks for a push. */
export type Asker = Omit<Approval_Asker, "$typeName" | "$unknown" | "environmentId"> & {
  readonly environmentId?: string;
};

/** The values that a new approval is created from. */
export interface ApprovalTemplate extends ApprovalContent {
  readonly id: string;
  /** SHA-256 of `requestJson`. */
  readonly digest: string;
  readonly asker: Asker;
  readonly creator: Subject;
  /** Only for a workflow step. */
  readonly executor?: Subject;
  readonly options: readonly ApprovalOption[];
  readonly deciders: ApprovalDeciders;
  readonly policyFieldPath: string;
  readonly lifetimeMs: number;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/** Returns a pending approval. */
export function newApproval({ lifetimeMs, now, ...template }: ApprovalTemplate): Approval {
  return create(ApprovalSchema, {
    ...template,
    options: [...template.options],
    state: State.PENDING,
    createdAt: timestampFromMs(now),
    expiresAt: timestampFromMs(now + lifetimeMs),
  });
}

/** Returns whether an approval waits for a decision, even if its time has run out. */
export function isPending({ state }: Approval): boolean {
  return state === State.PENDING;
}

/** Returns a pending approval after its end. @param reason text for the asker */
export function endedApproval(before: Approval, state: State, reason: string, now: number): Approval {
  const after = clone(ApprovalSchema, before);
  after.state = state;
  after.reason = reason;
  after.endedAt = timestampFromMs(now);
  return after;
}

/** Returns the outcome of an approval, for the agent execution that has asked. */
export function approvalOutcome({ id, asker, digest, state, optionId, answerJson, reason }: Approval) {
  const toolCallId = asker?.toolCallId ?? "";
  return create(ApprovalOutcomeSchema, {
    approvalId: id,
    toolCallId,
    digest,
    state,
    optionId,
    answerJson,
    reason,
  });
}

/** The context of a decision. */
export interface DecisionContext {
  readonly caller: Pick<Caller, "subject" | "role">;
  /** Ids of the groups of the caller, at least of those that the approval names. */
  readonly groupIds: readonly string[];
  /** Ids of the earlier deciders that may still decide. */
  readonly fitIds: ReadonlySet<string>;
  readonly now: number;
}

/**
 * Requires that a caller is one of those who may decide.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayDecide(
  { deciders, creator, executor }: Approval,
  { caller: { subject, role }, groupIds }: Pick<DecisionContext, "caller" | "groupIds">,
): void {
  const decider = { subject, isAdministrator: role === "administrator", groupIds };
  if (deciders && mayDecide(deciders, creator, decider, executor)) return;
  throw permissionDenied("decide_approval", "the approval names others as those who may decide it");
}

/**
 * Returns an approval after a decision. One denial denies it; the required number of approvals approves
 * it. Earlier approvals by people who may no longer decide do not count.
 * @throws DomainError APPROVAL_CHANGED; PHASE_UNSUITABLE for one that is not pending or that the
 * caller has decided before; VALUE_UNUSABLE for an option or an answer that does not fit
 */
export function decidedApproval(
  before: Approval,
  { digest, decision, optionId, reason, answerJson }: DecideApprovalRequest,
  { caller: { subject }, fitIds, now }: DecisionContext,
): Approval {
  if (digest !== before.digest) throw approvalChanged(before.digest);
  requirePending(before, now);
  if (before.decisions.some(({ by }) => by?.id === subject.id))
    throw phaseUnsuitable("approval", "PENDING", "you have decided already: others must approve it, too");
  const approved = decision === Decision.APPROVE;
  const option = chosenOption(before, approved, optionId);
  const answer = checkedAnswer(before, approved, answerJson);
  const after = clone(ApprovalSchema, before);
  after.decisions.push(
    create(ApprovalDecisionSchema, {
      by: subject,
      at: timestampFromMs(now),
      approved,
      optionId: option,
      reason,
    }),
  );
  const counted = after.decisions.filter(({ by }) => by?.id === subject.id || fitIds.has(by?.id ?? ""));
  if (approved && counted.length < (before.deciders?.required || 1)) return after;
  after.state = approved ? State.APPROVED : State.DENIED;
  after.endedAt = timestampFromMs(now);
  after.optionId = option;
  after.answerJson = answer;
  if (!approved) after.reason = reason;
  return after;
}

/**
 * Requires that an approval is pending.
 * @throws DomainError PHASE_UNSUITABLE, also when its time has run out but the job has not ended it yet
 */
function requirePending(approval: Approval, now: number): void {
  const isOver = isPending(approval) && approval.expiresAt && timestampMs(approval.expiresAt) <= now;
  const name = isOver ? "EXPIRED" : (State[approval.state] ?? "UNSPECIFIED");
  if (name === "PENDING") return;
  throw phaseUnsuitable("approval", name, `the approval is ${name}: there is nothing left to decide`);
}

const ALLOWING: readonly OptionKind[] = [OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS];
const REJECTING: readonly OptionKind[] = [OptionKind.REJECT_ONCE, OptionKind.REJECT_ALWAYS];

/** Returns the option that an answer implies if none was chosen: preferably one that applies once. */
export function optionFor<T extends Pick<ApprovalOption, "kind">>(
  options: readonly T[],
  approved: boolean,
): T | undefined {
  const [once, always] = approved ? ALLOWING : REJECTING;
  return options.find(({ kind }) => kind === once) ?? options.find(({ kind }) => kind === always);
}

/** Returns the id of the option that a decision chooses or implies; empty if there is none. */
function chosenOption({ options }: Approval, approved: boolean, optionId: string): string {
  const kinds = approved ? ALLOWING : REJECTING;
  if (optionId === "") return optionFor(options, approved)?.id ?? "";
  const option = options.find(({ id }) => id === optionId);
  if (!option) throw valueUnusable("optionId", "optionId names no option of the approval");
  if (kinds.includes(option.kind)) return optionId;
  throw valueUnusable("optionId", `optionId names an option that does not ${approved ? "approve" : "deny"}`);
}

/** Returns the answer to a question in canonical JSON; empty for everything else. */
function checkedAnswer({ kind }: Approval, approved: boolean, text: string): string {
  const isAnswered = kind === Kind.QUESTION && approved;
  if (!isAnswered && text !== "")
    throw valueUnusable("answerJson", "answerJson goes only with a question that is approved: leave it out");
  if (!isAnswered) return "";
  try {
    const answer: JsonValue = JSON.parse(text || "{}");
    if (isJsonObject(answer)) return canonicalJson(answer);
  } catch {
    // Reported below.
  }
  throw valueUnusable("answerJson", "answerJson must be a JSON object, such as {}");
}

/**
 * Returns the canonical text of JSON (RFC 8785): keys sorted by their UTF-16 code units, nothing
 * between the tokens, and strings and numbers as ECMAScript writes them.
 */
function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(",")}}`;
}
