import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { RequestApprovalRequestSchema } from "#gen/runner/v1/agent_work_service_pb.js";
import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import { type ApprovalOutcome, ApprovalState as State } from "#gen/service/v1/approval_pb.js";
import { optionFor } from "../../domain/approval/approval.ts";
import type { Lease } from "../protocol/lease.ts";
import { truncate } from "./agent-block.ts";

/** What an agent asks for; `options` must be complete. */
export type ApprovalRequest = Pick<
  MessageInitShape<typeof RequestApprovalRequestSchema>,
  "toolCallId" | "request" | "options"
>;

/** What became of a request. */
export interface ApprovalAnswer {
  readonly allowed: boolean;
  /** Id of the option that was chosen, or that goes with the answer of a policy; empty without one. */
  readonly optionId: string;
  /** The answer to a question, a JSON object as text; empty otherwise. */
  readonly answerJson: string;
  /** Why it was denied; may be empty. */
  readonly reason: string;
}

/** Limits of the contract, in characters (ApprovalToolCall). */
const MAX_TITLE_CHARACTERS = 512;
const MAX_INPUT_CHARACTERS = 65_536;

interface Waiting {
  readonly toolCallId: string;
  readonly resolve: (answer: ApprovalAnswer) => void;
}

/** Asks the service for what the agent of an execution may do, and waits for the answers of people. */
export class ApprovalRequests {
  readonly #lease: Lease;
  /** Requests that people are asked, by the id of the approval. */
  readonly #waiting = new Map<string, Waiting>();
  /** Outcomes that came before the response that names their approval. */
  readonly #early = new Map<string, ApprovalOutcome>();

  constructor(lease: Lease) {
    this.#lease = lease;
  }

  /**
   * Asks for something, and resolves once it is decided. A repeated request, also of another
   * process, asks nobody again. What the service refuses is denied. A second request under the id of
   * a tool call with other content denies the first one.
   *
   * @throws WorkInterrupted when the execution must end first
   */
  async ask(asked: ApprovalRequest): Promise<ApprovalAnswer> {
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
      return await this.#outcomeOf(answer.value);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return denied(asked, error.rawMessage);
    }
  }

  /**
   * Takes an input of the execution, if it is the outcome of an approval: the caller reports it as
   * seen, and gives it to nobody. One that nobody waits for is left by an earlier process.
   */
  take(input: AgentInput | undefined): boolean {
    if (input?.input.case !== "approval") return false;
    const outcome = input.input.value;
    const waiting = this.#waiting.get(outcome.approvalId);
    this.#waiting.delete(outcome.approvalId);
    if (waiting) waiting.resolve(toAnswer(outcome));
    else this.#early.set(outcome.approvalId, outcome);
    return true;
  }

  #outcomeOf(known: ApprovalOutcome): Promise<ApprovalAnswer> {
    const { approvalId, toolCallId } = known;
    this.#denyEarlier(toolCallId, approvalId);
    const outcome = known.state === State.PENDING ? this.#early.get(approvalId) : known;
    this.#early.delete(approvalId);
    if (outcome) return Promise.resolve(toAnswer(outcome));
    const { signal } = this.#lease;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(approvalId);
        reject(signal.reason);
      };
      const done = (answer: ApprovalAnswer) => {
        signal.removeEventListener("abort", onAbort);
        resolve(answer);
      };
      this.#waiting.set(approvalId, { toolCallId, resolve: done });
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
  }

  /** The service has cancelled what was asked for before under the same id, and tells nobody. */
  #denyEarlier(toolCallId: string, approvalId: string): void {
    for (const [id, waiting] of this.#waiting) {
      if (waiting.toolCallId !== toolCallId || id === approvalId) continue;
      this.#waiting.delete(id);
      waiting.resolve({ allowed: false, optionId: "", answerJson: "", reason: "it was replaced" });
    }
  }
}

/** Returns why nobody can be asked; people must see all of what they decide. */
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

function toAnswer({ state, optionId, answerJson, reason }: ApprovalOutcome): ApprovalAnswer {
  return { allowed: state === State.APPROVED, optionId, answerJson, reason };
}

function denied(asked: ApprovalRequest, reason: string): ApprovalAnswer {
  return { allowed: false, optionId: optionOf(asked, false), answerJson: "", reason };
}

function optionOf({ options = [] }: ApprovalRequest, allowed: boolean): string {
  const complete = options.map(({ id = "", kind = 0 }) => ({ id, kind }));
  return optionFor(complete, allowed)?.id ?? "";
}
