import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { RequestApprovalRequestSchema } from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import {
  type ApprovalOutcome,
  ApprovalQuestionSchema,
  ApprovalToolCallSchema,
  ApprovalState as State,
} from "#gen/service/v1/approval_pb.js";
import { approvalContent, optionFor } from "../../domain/approval/approval.ts";
import type { Lease } from "../protocol/lease.ts";
import { truncate } from "./agent-block.ts";

/** An agent's request for an approval; `options` must be complete. */
export type ApprovalRequest = Pick<
  MessageInitShape<typeof RequestApprovalRequestSchema>,
  "toolCallId" | "request" | "options"
>;

/** The decision on a request. */
export interface ApprovalAnswer {
  readonly allowed: boolean;
  /** Id of the option that a person chose or that matches a policy's decision; empty when there is none. */
  readonly optionId: string;
  /** The answer to a question as the text of a JSON object; empty otherwise. */
  readonly answerJson: string;
  /** Why it was denied; may be empty. */
  readonly reason: string;
  /** The digest of the request that was decided; see {@link digestOf}. */
  readonly digest: string;
  /** True if people were asked, by this process or an earlier one. */
  readonly wasAsked: boolean;
}

/** Options of a wait for an answer. */
export interface AskOptions {
  /** Aborted when the caller no longer waits. */
  readonly signal?: AbortSignal;
  /** Called once people are asked. */
  readonly onPending?: () => void;
}

/** Limits of the contract, in characters (ApprovalToolCall). */
const MAX_TITLE_CHARACTERS = 512;
export const MAX_INPUT_CHARACTERS = 65_536;
interface Waiting {
  readonly approvalId: string;
  readonly toolCallId: string;
  readonly resolve: (answer: ApprovalAnswer) => void;
}

/** Requests approvals for an execution's agent from the service, and waits for people's decisions. */
export class ApprovalRequests {
  readonly #lease: Lease;
  /** Requests that wait for people. The same request may be here twice. */
  readonly #waiting = new Set<Waiting>();
  /** Outcomes that arrived before the response that names their approval. */
  readonly #early = new Map<string, ApprovalOutcome>();
  readonly #asking = new Set<Promise<ApprovalAnswer>>();

  constructor(lease: Lease) {
    this.#lease = lease;
  }

  /**
   * Requests an approval and resolves once it is decided. Repeating a request, even from another process, does not
   * ask people again. A request that the service refuses is denied. A second request with the id of the same tool
   * call and other content denies the first one.
   *
   * @throws WorkInterrupted when the execution must end first
   * @throws the reason of the signal when the signal is aborted first; the service is not notified
   */
  async ask(asked: ApprovalRequest, options: AskOptions = {}): Promise<ApprovalAnswer> {
    const asking = this.#ask(asked, options);
    this.#asking.add(asking);
    try {
      return await asking;
    } finally {
      this.#asking.delete(asking);
    }
  }

  /** Resolves when all requests made so far are decided or have failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#asking);
  }

  async #ask(asked: ApprovalRequest, options: AskOptions): Promise<ApprovalAnswer> {
    const problem = problemOf(asked);
    if (problem !== undefined) return denied(asked, problem);
    try {
      const { answer } = await this.#lease.call((client, name, options) =>
        client.requestApproval({ ...name, ...withShortTitle(asked) }, options),
      );
      if (answer.case === "policy") {
        const { allowed, reason } = answer.value;
        return { ...denied(asked, reason), allowed, optionId: optionOf(asked, allowed) };
      }
      if (answer.case !== "approval") return denied(asked, "the service gave no answer");
      return await this.#outcomeOf(answer.value, options);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return denied(asked, error.rawMessage);
    }
  }

  /**
   * Consumes an input of the execution if it is the outcome of an approval. The caller then reports the input as seen
   * and does not pass it to the agent. An outcome that no request waits for is stored: its response may follow.
   *
   * @returns false for any other input
   */
  take(input: AgentInput | undefined): boolean {
    if (input?.input.case !== "approval") return false;
    const outcome = input.input.value;
    const waiting = [...this.#waiting].filter(({ approvalId }) => approvalId === outcome.approvalId);
    for (const each of waiting) each.resolve(toAnswer(outcome));
    if (waiting.length === 0) this.#early.set(outcome.approvalId, outcome);
    return true;
  }

  #outcomeOf(known: ApprovalOutcome, { signal: own, onPending }: AskOptions): Promise<ApprovalAnswer> {
    const { approvalId, toolCallId } = known;
    this.#denyEarlier(toolCallId, approvalId);
    const outcome = known.state === State.PENDING ? this.#early.get(approvalId) : known;
    this.#early.delete(approvalId);
    if (outcome) return Promise.resolve(toAnswer(outcome));
    const signal = own ? AbortSignal.any([own, this.#lease.signal]) : this.#lease.signal;
    if (!signal.aborted) onPending?.();
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting.delete(waiting);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        end();
        reject(signal.reason);
      };
      const waiting: Waiting = {
        approvalId,
        toolCallId,
        resolve: (answer) => {
          end();
          resolve(answer);
        },
      };
      this.#waiting.add(waiting);
      signal.addEventListener("abort", onAbort);
      if (signal.aborted) onAbort();
    });
  }

  /** Denies earlier requests with the same tool call id: the service cancels them without a notification. */
  #denyEarlier(toolCallId: string, approvalId: string): void {
    for (const waiting of [...this.#waiting]) {
      if (waiting.toolCallId === toolCallId && waiting.approvalId !== approvalId) waiting.resolve(REPLACED);
    }
  }
}

const REPLACED: ApprovalAnswer = {
  allowed: false,
  optionId: "",
  answerJson: "",
  reason: "it was replaced",
  digest: "",
  wasAsked: true,
};

/** Returns the SHA-256 of the request's canonical JSON, in hexadecimal digits, as the service computes it. */
export function digestOf(asked: ApprovalRequest): string {
  const { request } = withShortTitle(asked);
  if (request?.case === undefined) throw new Error("a request for an approval asks for nothing");
  const text = approvalContent(
    request.case === "toolCall"
      ? { case: "toolCall", value: create(ApprovalToolCallSchema, request.value) }
      : { case: "question", value: create(ApprovalQuestionSchema, request.value) },
  );
  return createHash("sha256").update(text.requestJson, "utf8").digest("hex");
}

/** Returns why people cannot be asked, or undefined when they can. They must see the whole input that they approve. */
function problemOf({ request }: ApprovalRequest): string | undefined {
  const text = request?.case === "toolCall" ? (request.value.input ?? "") : "";
  if ([...text].length <= MAX_INPUT_CHARACTERS) return undefined;
  return `what the tool is asked has more than ${MAX_INPUT_CHARACTERS} characters, which nobody would read`;
}

function withShortTitle(asked: ApprovalRequest): ApprovalRequest {
  if (asked.request?.case !== "toolCall") return asked;
  const title = truncate(asked.request.value.title ?? "", MAX_TITLE_CHARACTERS);
  return {
    ...asked,
    request: { case: "toolCall", value: { ...asked.request.value, title } },
  } as ApprovalRequest;
}

function toAnswer({ state, optionId, answerJson, reason, digest }: ApprovalOutcome): ApprovalAnswer {
  return { allowed: state === State.APPROVED, optionId, answerJson, reason, digest, wasAsked: true };
}

function denied(asked: ApprovalRequest, reason: string): ApprovalAnswer {
  const digest = digestOf(asked);
  return {
    allowed: false,
    optionId: optionOf(asked, false),
    answerJson: "",
    reason,
    digest,
    wasAsked: false,
  };
}

function optionOf({ options = [] }: ApprovalRequest, allowed: boolean): string {
  const complete = options.map(({ id = "", kind = 0 }) => ({ id, kind }));
  return optionFor(complete, allowed)?.id ?? "";
}
