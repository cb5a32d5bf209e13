import { createInterface } from "node:readline/promises";
import { toJson } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  type Approval,
  type ApprovalDeciders,
  ApprovalKind,
  ApprovalOption_Kind,
  ApprovalSchema,
  ApprovalState,
  ApprovalDeciders_Who as Who,
} from "#gen/service/v1/approval_pb.js";
import {
  ApprovalService,
  DecideApprovalRequest_Decision as Decision,
} from "#gen/service/v1/approval_service_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import type { Terminal } from "../definitions/command-line.ts";
import { StartError } from "../start-error.ts";
import { table } from "../terminal/table.ts";
import { call, readPages } from "./call.ts";
import { enumWords, jsonText, printable, timeOf } from "./printable.ts";
import type { ServerAccess } from "./server-access.ts";

/** The states by name on the command line. */
export const STATES = {
  pending: ApprovalState.PENDING,
  approved: ApprovalState.APPROVED,
  denied: ApprovalState.DENIED,
  expired: ApprovalState.EXPIRED,
  cancelled: ApprovalState.CANCELLED,
} as const;
export type StateName = keyof typeof STATES;

/** Selects the approvals to list. */
export interface ApprovalFilter {
  readonly states: readonly StateName[];
  /** Ids of agent runs; empty for all. */
  readonly runs: readonly string[];
  /** Ids of workflow executions; empty for all. */
  readonly workflowExecutions: readonly string[];
  /** The maximum number of approvals to list. */
  readonly limit: number;
}

/** Returns approvals, the newest first. @throws StartError */
export function listApprovals(
  access: ServerAccess,
  { states, runs, workflowExecutions, limit }: ApprovalFilter,
): Promise<Approval[]> {
  const filter = {
    states: states.map((state) => STATES[state]),
    agentExecutionIds: [...runs],
    workflowExecutionIds: [...workflowExecutions],
  };
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      approvalsOf(access).listApprovals({ filter, pagination }, options),
    );
    return { elements: page.approvals, pagination: page.pagination };
  });
}

/** Returns an approval. @throws StartError */
export async function getApproval(access: ServerAccess, approvalId: string): Promise<Approval> {
  const { approval } = await call(access, (options) =>
    approvalsOf(access).getApproval({ approvalId }, options),
  );
  return present(approval);
}

/** A decision and its approval. */
export interface DecisionArguments {
  readonly approved: boolean;
  /** Digest of the reviewed request; undefined to read the approval and decide its current request. */
  readonly digest: string | undefined;
  readonly option: string | undefined;
  /** The answer to a question, as JSON. */
  readonly answer: string | undefined;
  readonly reason: string | undefined;
}

/**
 * Decides an approval.
 * @returns the approval after the decision
 * @throws StartError
 */
export async function decideApproval(
  access: ServerAccess,
  approvalId: string,
  { approved, digest, option = "", answer = "", reason = "" }: DecisionArguments,
): Promise<Approval> {
  const request = {
    approvalId,
    digest: digest ?? (await getApproval(access, approvalId)).digest,
    decision: approved ? Decision.APPROVE : Decision.DENY,
    optionId: option,
    answerJson: answer,
    reason,
  };
  try {
    const { approval } = await call(access, (options) =>
      approvalsOf(access).decideApproval(request, options),
    );
    return present(approval);
  } catch (error) {
    throw isStale(error) ? staleDigest(`chartroom approval show ${approvalId}`) : error;
  }
}

/**
 * Returns the one approval that a run waits for.
 * @param digest digest of the reviewed request; undefined for any request
 * @throws StartError when the run waits for none, for several, or for a different request
 */
export async function approvalOfRun(
  access: ServerAccess,
  run: string,
  digest: string | undefined,
): Promise<Approval> {
  const filter = { states: ["pending"], runs: [run], workflowExecutions: [], limit: 1_000 } as const;
  const waiting = await listApprovals(access, filter);
  const list = `chartroom approval list --run ${run}`;
  const [approval, ...others] = waiting.filter((each) => digest === undefined || each.digest === digest);
  if (!approval && waiting.length > 0) throw staleDigest(list);
  if (!approval) throw new StartError(`the run ${run} waits for no approval`);
  // Equal requests have the same digest.
  if (others.length === 0) return approval;
  throw new StartError(
    `the run ${run} waits for ${others.length + 1} approvals: ${list} shows them, chartroom approval approve ID decides one`,
  );
}

/** Asks the person at the terminal for confirmation. @returns whether the answer was yes */
export async function confirm(
  { input, output }: Pick<Terminal, "input" | "output">,
  question: string,
): Promise<boolean> {
  const lines = createInterface({ input, output });
  try {
    const answer = await new Promise<string>((resolve) => {
      lines.once("close", () => resolve(""));
      lines.question(question).then(resolve, () => resolve(""));
    });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
    input.destroy();
  }
}

/** Returns approvals as a table for people. */
export function approvalTable(approvals: readonly Approval[], maxWidth?: number): string {
  if (approvals.length === 0) return "no approvals\n";
  const rows = approvals.map((approval) => [
    approval.id,
    enumWords(ApprovalState[approval.state]),
    timeOf(approval.createdAt),
    timeOf(approval.expiresAt),
    enumWords(ApprovalKind[approval.kind]),
    approval.asker?.agentExecutionId || approval.asker?.workflowExecutionId || "",
    approval.title,
  ]);
  return table(
    ["APPROVAL", "STATE", "REQUESTED (UTC)", "EXPIRES (UTC)", "KIND", "REQUESTED BY", "TITLE"],
    rows,
    maxWidth,
  );
}

/** Returns an approval with all its details, as text for people. */
export function approvalText(approval: Approval): string {
  const { asker, options, decisions, deciders } = approval;
  const facts: readonly (readonly [string, string])[] = [
    ["approval", approval.id],
    ["state", [enumWords(ApprovalState[approval.state]), approval.reason].filter(Boolean).join(": ")],
    ["kind", enumWords(ApprovalKind[approval.kind])],
    ["title", approval.title],
    ["run", asker?.agentExecutionId ?? ""],
    ["tool call", asker?.toolCallId ?? ""],
    ["workflow execution", asker?.workflowExecutionId ?? ""],
    ["action", asker?.workflowActionId ?? ""],
    ["step", asker?.stepIndex === undefined ? "" : `${asker.stepIndex}`],
    ["for", subjectName(approval.creator)],
    ["asked", timeOf(approval.createdAt)],
    ["until", timeOf(approval.expiresAt)],
    ["ended", timeOf(approval.endedAt)],
    ["carried out", timeOf(approval.carriedOutAt)],
    ["who decides", deciders ? deciderNames(deciders) : ""],
    ["asked because of", approval.policyFieldPath],
    ...options.map(
      ({ id, name, kind }) => ["option", `${id}: ${name} (${enumWords(ApprovalOption_Kind[kind])})`] as const,
    ),
    ...decisions.map(({ by, at, approved, reason }) => {
      const what = `${approved ? "approved" : "denied"} by ${subjectName(by)}, ${timeOf(at)}`;
      return ["decision", reason === "" ? what : `${what}: ${reason}`] as const;
    }),
    ["chosen option", approval.optionId],
    ["answer", approval.answerJson],
    ["digest", approval.digest],
  ];
  const lines = facts
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name.padEnd(19)} ${value}\n`);
  return printable(`${lines.join("")}\n${indented(approval.requestJson)}\n`);
}

/** Returns approvals as a JSON list of service.v1.Approval. */
export function approvalsJson(approvals: readonly Approval[]): string {
  return jsonText(approvals.map((approval) => toJson(ApprovalSchema, approval)));
}

/** Returns an approval as a JSON object, a service.v1.Approval. */
export function approvalJson(approval: Approval): string {
  return jsonText(toJson(ApprovalSchema, approval));
}

/** Returns a sentence about the effect of a decision. */
export function decisionText({ id, state, deciders, decisions, digest }: Approval): string {
  if (state !== ApprovalState.PENDING) return `${enumWords(ApprovalState[state])} ${id}, digest ${digest}\n`;
  const approvals = decisions.filter(({ approved }) => approved).length;
  return `approved ${id}, digest ${digest}: ${approvals} of the ${deciders?.required} who must have\n`;
}

function approvalsOf({ server }: ServerAccess): Client<typeof ApprovalService> {
  return createClient(ApprovalService, createHttpTransport(server));
}

function present(approval: Approval | undefined): Approval {
  if (approval) return approval;
  throw new StartError("the server has answered without the approval");
}

function isStale(error: unknown): boolean {
  return error instanceof StartError && ConnectError.from(error.cause).code === Code.Aborted;
}

function staleDigest(look: string): StartError {
  return new StartError(
    `nothing was decided: the digest is not that of what is asked now; look at it with ${look} and decide again`,
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}

function subjectName(subject: Subject | undefined): string {
  return subject ? `${enumWords(Principal[subject.principal])} ${subject.id}` : "";
}

function deciderNames({ who, userIds, groupIds, required, excludesStarter }: ApprovalDeciders): string {
  const parts = [
    who === Who.USERS && userIds.length > 0 ? `users ${userIds.join(", ")}` : "",
    who === Who.USERS && groupIds.length > 0 ? `users of the groups ${groupIds.join(", ")}` : "",
    who === Who.USERS ? "" : enumWords(Who[who]),
    required > 1 && `${required} of them must approve`,
    excludesStarter && "not who started it",
  ];
  return parts.filter(Boolean).join("; ");
}
