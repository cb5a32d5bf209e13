import { createHash } from "node:crypto";
import {
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type CreateTerminalRequest,
  RequestError,
  type RequestPermissionOutcome,
} from "@agentclientprotocol/sdk";
import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import {
  AgentOutputBlock_Question_State as QuestionState,
  AgentOutputBlock_ToolCall_Kind as ToolKind,
  AgentOutputBlock_ToolCall_State as ToolState,
} from "#gen/service/v1/agent_pb.js";
import { questionBlock } from "../agent-block.ts";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  ApprovalRequests,
  digestOf,
} from "../approval-requests.ts";
import type { RunningAgent } from "../running-agent.ts";
import { type ClientCall, commandFolder, namesCommand } from "./acp-client-calls.ts";
import type { AcpOutput } from "./acp-output.ts";
import { CANCELLED, outcomeOf, type PermissionRequest, toApprovalRequest } from "./acp-permissions.ts";
import { elicitationAnswer, questionOf } from "./acp-questions.ts";

/** A tool call for a command that was allowed, and that the runner has not run yet. */
interface AllowedCommand {
  /** The input of the tool, as the agent reported it. */
  readonly input: string;
  /** The real path of its folder at the time of the request. */
  readonly folder: string;
}

/** Maximum number of allowed commands of a turn that are kept until the runner runs them. */
const MAX_ALLOWED_COMMANDS = 64;
/** Maximum number of requests of a turn that are counted by their content; further ones are counted together. */
const MAX_COUNTED_REQUESTS = 4_096;

/**
 * Returns the real path of a folder in the workspace.
 * @throws RequestError for one outside
 */
export type ResolveFolder = (path: string) => Promise<string>;

/** Asks the policy, and people, to approve the actions of an agent, and reports their state. */
export class AcpApprovals {
  readonly #agent: RunningAgent;
  readonly #output: AcpOutput;
  readonly #requests: ApprovalRequests;
  readonly #resolve: ResolveFolder;
  readonly #commands: AllowedCommand[] = [];
  /** Number of identical requests in the turn, by their digest. */
  readonly #repeats = new Map<string, number>();
  #requestCount = 0;
  #inputId = "";
  #hasLeft = false;

  constructor(agent: RunningAgent, output: AcpOutput, resolve: ResolveFolder) {
    this.#agent = agent;
    this.#output = output;
    this.#resolve = resolve;
    this.#requests = new ApprovalRequests(agent.assignment.lease);
  }

  /** Handles an input if it is the outcome of a request. */
  take(input: AgentInput): boolean {
    if (!this.#requests.take(input)) return false;
    this.#agent.report.seen(input.id);
    return true;
  }

  beginTurn(inputId: string): void {
    this.#inputId = inputId;
    this.#hasLeft = false;
    this.#commands.length = 0;
    this.#repeats.clear();
    this.#requestCount = 0;
  }

  /** Returns whether the turn has asked people something without waiting for the answer. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Resolves when all requests of the agent are answered. */
  settled(): Promise<void> {
    return this.#requests.settled();
  }

  /** Decides whether an agent may execute a tool call by itself. */
  async permit(request: PermissionRequest): Promise<RequestPermissionOutcome> {
    const { call, options, signal } = request;
    const asked = toApprovalRequest(request, this.#agent.assignment.secrets);
    if (signal.aborted || asked.toolCallId === "") return CANCELLED;
    const { input = "" } = call;
    // A symbolic link in the path may lead elsewhere by the time people have answered.
    const folder = await this.#folderOf(input);
    const answer = await this.#ask(asked, signal, call.state);
    if (!answer) return CANCELLED;
    const isCommand = call.kind === ToolKind.EXECUTE && folder !== undefined;
    if (answer.allowed && isCommand && digestOf(asked) === answer.digest) {
      this.#commands.push({ input, folder });
      if (this.#commands.length > MAX_ALLOWED_COMMANDS) this.#commands.shift();
    }
    return outcomeOf(answer, options);
  }

  /**
   * Executes an action that the agent requests from the runner, if it is allowed and has not changed since the request.
   *
   * @param describe returns the action as it would be done now
   * @param act starts it, and returns the answer for the agent
   * @param succeeds resolves once what was started has ended, to whether it has succeeded
   * @throws RequestError
   */
  async executeIfAllowed<T>(
    describe: () => Promise<ClientCall>,
    signal: AbortSignal,
    act: () => Promise<T>,
    succeeds: (answer: T) => Promise<boolean> = async () => true,
  ): Promise<T> {
    const { secrets } = this.#agent.assignment;
    const present = async () => {
      const { tool, call } = await describe();
      return toApprovalRequest({ tool, call: { ...call, id: "" } }, secrets);
    };
    const asked = await present();
    const toolCallId = this.#idOf(asked);
    const request = { ...asked, toolCallId };
    const answer = await this.#ask(request, signal, ToolState.RUNNING);
    if (!answer) throw RequestError.requestCancelled();
    if (!answer.allowed) throw RequestError.invalidRequest(undefined, refusalOf(asked, answer));
    // Calls that no person was asked to approve are not reported.
    const tellEnd = (isDone: boolean) => {
      if (answer.wasAsked)
        this.#output.call({ id: toolCallId, state: isDone ? ToolState.DONE : ToolState.FAILED });
    };
    try {
      if (digestOf(await present()) !== answer.digest)
        throw RequestError.invalidRequest(undefined, "it is not what was asked for any more: ask again");
      const result = await act();
      void succeeds(result).then(tellEnd);
      return result;
    } catch (error) {
      tellEnd(false);
      throw error;
    }
  }

  /**
   * Returns whether a command was allowed as a tool call of the turn; it is allowed once.
   * @param folder the real path of the folder that it would run in
   */
  takeAllowedCommand(command: CreateTerminalRequest, folder: string): boolean {
    const at = this.#commands.findIndex(
      (allowed) => allowed.folder === folder && namesCommand(allowed.input, command),
    );
    if (at !== -1) this.#commands.splice(at, 1);
    return at !== -1;
  }

  async #folderOf(input: string): Promise<string | undefined> {
    return this.#resolve(commandFolder(input, this.#agent.folder)).catch(() => undefined);
  }

  /** Asks a person. An answer that does not match the schema is requested again. */
  async question(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const question = questionOf(request);
    for (;;) {
      const { secrets } = this.#agent.assignment;
      const message = secrets.maskText(request.message.toWellFormed()).slice(0, 4_096) || "(no words)";
      const schemaJson = question ? secrets.maskText(JSON.stringify(question.schema).toWellFormed()) : "";
      const value = { message, schemaJson };
      const asked: ApprovalRequest = { toolCallId: "", request: { case: "question", value }, options: [] };
      const id = this.#idOf(asked);
      const shown = { id, message: request.message, schema: schemaJson };
      const tell = (state: QuestionState) => this.#output.block(questionBlock({ ...shown, state }));
      const answer =
        question && !signal.aborted
          ? await this.#waitForAnswer({ ...asked, toolCallId: id }, signal, () => tell(QuestionState.OPEN))
          : undefined;
      const response =
        question && answer?.allowed ? elicitationAnswer(question, answer.answerJson) : undefined;
      tell(response ? QuestionState.ANSWERED : QuestionState.DECLINED);
      if (response) return response;
      if (!answer?.allowed) return { action: signal.aborted ? "cancel" : "decline" };
      this.#output.error("the answer is not of the form of the question's schema: it is asked again");
    }
  }

  /** Requests approval of a tool call, and reports its state; returns undefined when the agent cancels the request. */
  async #ask(
    asked: ApprovalRequest,
    signal: AbortSignal,
    before: ToolState | undefined,
  ): Promise<ApprovalAnswer | undefined> {
    let wasPending = false;
    const { title = "", kind } = callOf(asked);
    const call = { id: asked.toolCallId ?? "", title, kind: kind as number };
    const answer = await this.#waitForAnswer(asked, signal, () => {
      wasPending = true;
      this.#output.call({ ...call, state: ToolState.WAITING_FOR_APPROVAL });
    });
    const state = answer?.allowed ? before || ToolState.PENDING : ToolState.FAILED;
    // If this process has not reported the request, an earlier process has asked people.
    if (wasPending || answer?.wasAsked) this.#output.call({ ...call, state });
    if (answer && !answer.allowed) this.#output.error(refusalOf(asked, answer));
    return answer;
  }

  async #waitForAnswer(
    asked: ApprovalRequest,
    signal: AbortSignal,
    onPending: () => void,
  ): Promise<ApprovalAnswer | undefined> {
    try {
      return await this.#requests.ask(asked, { signal, onPending });
    } catch (error) {
      this.#hasLeft = true;
      // Any other failure ends the run: the agent gets no response that it could take for an answer.
      if (signal.aborted || this.#agent.signal.aborted) return undefined;
      throw error;
    }
  }

  /** Returns an id for a request without one; it is the same when a restarted turn repeats the request. */
  #idOf(asked: ApprovalRequest): string {
    const digest = digestOf(asked);
    this.#requestCount++;
    const isCounted = this.#repeats.has(digest) || this.#repeats.size < MAX_COUNTED_REQUESTS;
    // The number of all requests is more than any that something was counted with before.
    const number = isCounted ? (this.#repeats.get(digest) ?? 0) + 1 : this.#requestCount;
    if (isCounted) this.#repeats.set(digest, number);
    const name = JSON.stringify([this.#inputId, digest, number]);
    return `asked-${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
  }
}

function callOf({ request }: ApprovalRequest) {
  if (request?.case !== "toolCall") throw new Error("it is no tool call");
  return request.value;
}

function refusalOf(asked: ApprovalRequest, { reason }: ApprovalAnswer): string {
  const { title } = callOf(asked);
  return `the tool call ${title} was denied${reason === "" ? "" : `: ${reason}`}`;
}
