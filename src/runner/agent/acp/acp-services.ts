import { randomUUID } from "node:crypto";
import type {
  ClientApp,
  CreateElicitationRequest,
  CreateElicitationResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import {
  type AgentInput,
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
  AgentOutputBlock_Question_State as QuestionState,
} from "#gen/service/v1/agent_pb.js";
import { fileChangeBlock, questionBlock, type ToolCall } from "../agent-block.ts";
import type { RunningAgent } from "../running-agent.ts";
import type { AcpChoices } from "./acp-choices.ts";
import { WorkspaceFiles } from "./acp-files.ts";
import type { AcpOutput } from "./acp-output.ts";
import { type DecidePermission, decideAlone } from "./acp-permissions.ts";
import { answerOf, type PersonQuestion, questionOf } from "./acp-questions.ts";
import { Terminals } from "./acp-terminals.ts";
import { shownPath, tellUpdate, toToolCall, type UpdateContext } from "./acp-updates.ts";

/** Number of tool calls whose facts are kept for a permission that is asked for later. */
const MAX_KEPT_CALLS = 256;
/** The answer of a person who does not answer a question. */
const DECLINE = "/decline";

interface OpenQuestion {
  readonly id: string;
  readonly question: PersonQuestion;
  readonly answer: (response: CreateElicitationResponse) => void;
}

/** Answers what an agent asks of its client: files, terminals, permissions, questions and updates. */
export class AcpServices {
  readonly #agent: RunningAgent;
  readonly #output: AcpOutput;
  readonly #files: WorkspaceFiles;
  readonly #terminals: Terminals;
  readonly #decide: DecidePermission;
  readonly #calls = new Map<string, ToolCall>();
  readonly #context: UpdateContext;
  /** Names of the commands that the agent has told of. */
  commands: ReadonlySet<string> = new Set();
  #sessionId: string | undefined;
  #choices: AcpChoices | undefined;
  #isIgnoring = false;
  #turn = new AbortController();
  #question: OpenQuestion | undefined;

  constructor(agent: RunningAgent, output: AcpOutput, decide: DecidePermission = decideAlone) {
    this.#agent = agent;
    this.#output = output;
    this.#decide = decide;
    this.#files = new WorkspaceFiles(agent.tree);
    this.#terminals = new Terminals({
      programs: agent.assignment.tools.programs,
      folder: agent.folder,
      environment: agent.environment,
      resolve: (path) => this.#files.resolve(path),
    });
    this.#context = {
      output,
      tree: agent.tree,
      terminalOutput: (id) => this.#terminals.outputOf(id),
    };
  }

  serve(app: ClientApp): ClientApp {
    return app
      .onNotification("session/update", ({ params }) => {
        if (this.#isIgnoring || !this.#isOwn(params.sessionId)) return;
        this.#update(params.update);
      })
      .onRequest("session/request_permission", ({ params, signal }) => this.#askPermission(params, signal))
      .onRequest("elicitation/create", ({ params, signal }) => this.#ask(params, signal))
      .onRequest("fs/read_text_file", ({ params }) => this.#files.read(params))
      .onRequest("fs/write_text_file", async ({ params }) => {
        const written = await this.#files.write(params);
        const kind = written === "created" ? FileChangeKind.CREATED : FileChangeKind.MODIFIED;
        this.#output.block(
          fileChangeBlock({ path: shownPath(this.#agent.tree, params.path), kind, diff: "" }),
        );
        return {};
      })
      .onRequest("terminal/create", async ({ params }) => ({
        terminalId: await this.#terminals.create(params),
      }))
      .onRequest("terminal/output", ({ params }) => this.#terminals.output(params.terminalId))
      .onRequest("terminal/wait_for_exit", ({ params }) => this.#terminals.waitForExit(params.terminalId))
      .onRequest("terminal/kill", ({ params }) => this.#terminals.kill(params.terminalId))
      .onRequest("terminal/release", ({ params }) => this.#terminals.release(params.terminalId));
  }

  setSession(id: string, choices: AcpChoices): void {
    this.#sessionId = id;
    this.#choices = choices;
  }

  /** Passes over updates from now on, or does not any more: those of a session that is replayed are known. */
  ignoreUpdates(isIgnoring: boolean): void {
    this.#isIgnoring = isIgnoring;
  }

  beginTurn(): void {
    this.#turn = new AbortController();
  }

  /** Takes back what the agent asks for in the turn. */
  endTurn(): void {
    this.#turn.abort();
  }

  /**
   * Takes a message as the answer to the question that is open.
   * @returns false if it is none
   */
  takeAnswer({ id, input }: AgentInput): boolean {
    if (!this.#question || input.case !== "userInput") return false;
    const { report } = this.#agent;
    report.seen(id);
    report.setState(State.RUNNING);
    const { inputs, input: only } = input.value;
    const parts = only.case === undefined ? inputs.map((part) => part.input) : [only];
    const words = parts.map((part) => (part.case === "text" ? part.value.content : "")).join("\n");
    const response: CreateElicitationResponse | undefined =
      words.trim() === DECLINE ? { action: "decline" } : answerOf(this.#question.question, words);
    if (response) {
      this.#question.answer(response);
      return true;
    }
    this.#output.error(
      `this is no answer to the question: answer with a JSON object of the form of its schema, or with ${DECLINE}`,
    );
    report.setState(State.WAITING);
    return true;
  }

  /** Ends what the agent has left behind. */
  async end(): Promise<void> {
    this.endTurn();
    await this.#terminals.end();
  }

  #isOwn(sessionId: string): boolean {
    return this.#sessionId === undefined || sessionId === this.#sessionId;
  }

  #update(update: SessionUpdate): void {
    if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update")
      this.#keepCall(toToolCall({ ...update, content: null, rawOutput: null }, this.#context));
    const change = tellUpdate(update, this.#context);
    switch (change?.sessionUpdate) {
      case "available_commands_update":
        this.commands = new Set(change.availableCommands.map(({ name }) => name));
        return;
      case "config_option_update":
        this.#choices?.setOptions(change.configOptions);
        return;
      case "current_mode_update": {
        const mode = this.#choices?.setMode(change.currentModeId);
        if (mode) this.#output.update({ mode });
      }
    }
  }

  /** Keeps what is known of a call, and returns all of it. */
  #keepCall(call: ToolCall): ToolCall {
    const id = call.id ?? "";
    const told = Object.entries(call).filter(
      ([, value]) => value && !(Array.isArray(value) && value.length === 0),
    );
    const known = { ...this.#calls.get(id), ...Object.fromEntries(told), id };
    this.#calls.delete(id);
    this.#calls.set(id, known);
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > MAX_KEPT_CALLS && oldest !== undefined) this.#calls.delete(oldest);
    return known;
  }

  async #askPermission(
    { toolCall, options }: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const asked = toToolCall(toolCall, this.#context);
    const call = this.#keepCall({ ...asked, result: "" });
    // What is told with the request is told of the call, too.
    if (asked.id !== "") this.#output.call(asked);
    const { outcome, refusal } = await this.#decide({
      call,
      options,
      signal: AbortSignal.any([signal, this.#turn.signal]),
    });
    if (refusal) this.#output.error(refusal);
    return { outcome };
  }

  async #ask(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const question = questionOf(request);
    const { report, isStep } = this.#agent;
    const id = randomUUID();
    const told = {
      id,
      message: request.message,
      schema: question ? JSON.stringify(question.schema) : "",
    };
    const gone = AbortSignal.any([signal, this.#turn.signal]);
    if (!question || isStep || this.#question || gone.aborted) {
      this.#output.block(questionBlock({ ...told, state: QuestionState.DECLINED }));
      return { action: "decline" };
    }
    this.#output.block(questionBlock({ ...told, state: QuestionState.OPEN }));
    const { promise, resolve } = Promise.withResolvers<CreateElicitationResponse>();
    const onGone = () => resolve({ action: "cancel" });
    gone.addEventListener("abort", onGone, { once: true });
    this.#question = { id, question, answer: resolve };
    report.setState(State.WAITING);
    try {
      const response = await promise;
      const state = response.action === "accept" ? QuestionState.ANSWERED : QuestionState.DECLINED;
      this.#output.block(questionBlock({ id, state }));
      return response;
    } finally {
      this.#question = undefined;
      gone.removeEventListener("abort", onGone);
    }
  }
}
