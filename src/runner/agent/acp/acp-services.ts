import { join } from "node:path";
import type {
  ClientApp,
  CreateTerminalRequest,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  WriteTextFileRequest,
} from "@agentclientprotocol/sdk";
import {
  type AgentInput,
  AgentOutputBlock_FileChange_Kind as FileChangeKind,
} from "#gen/service/v1/agent_pb.js";
import { fileChangeBlock } from "../agent-block.ts";
import type { RunningAgent } from "../running-agent.ts";
import { AcpApprovals } from "./acp-approvals.ts";
import type { AcpChoices } from "./acp-choices.ts";
import { type ClientCall, readFileCall, runCommandCall, writeFileCall } from "./acp-client-calls.ts";
import { WorkspaceFiles } from "./acp-files.ts";
import type { OpenRequests, RequestId } from "./acp-open-requests.ts";
import type { AcpOutput } from "./acp-output.ts";
import type { DecidePermission } from "./acp-permissions.ts";
import { KnownCalls } from "./acp-permissions.ts";
import type { AcpSession } from "./acp-session.ts";
import { Terminals } from "./acp-terminals.ts";
import { describeUpdate, shownPath, toToolCall, type UpdateContext } from "./acp-updates.ts";

/** Answers what an agent asks of its client: files, terminals, permissions, questions and updates. */
export class AcpServices {
  readonly #agent: RunningAgent;
  readonly #output: AcpOutput;
  readonly #files: WorkspaceFiles;
  readonly #terminals: Terminals;
  readonly #approvals: AcpApprovals;
  readonly #decide: DecidePermission;
  readonly #calls: KnownCalls;
  readonly #requests: OpenRequests;
  readonly #context: UpdateContext;
  /** Names of the commands that the agent has announced. */
  commands: ReadonlySet<string> = new Set();
  #session: AcpSession | undefined;
  #choices: AcpChoices | undefined;
  #isIgnoring = false;
  #turn = new AbortController();
  #lastAnswer: Promise<unknown> = Promise.resolve();

  /** @param requests counts what the agent has not read */
  constructor(agent: RunningAgent, output: AcpOutput, requests: OpenRequests) {
    this.#agent = agent;
    this.#output = output;
    this.#requests = requests;
    this.#calls = new KnownCalls(agent.assignment.secrets);
    this.#files = new WorkspaceFiles(agent.tree, agent.assignment.tools.isolation.user);
    this.#approvals = new AcpApprovals(agent, output, (path) => this.#files.resolve(path));
    this.#decide = (request) => this.#approvals.permit(request);
    this.#terminals = new Terminals({
      runCommand: agent.runCommand,
      environment: agent.environment,
      secrets: agent.assignment.secrets,
    });
    this.#context = {
      output,
      tree: agent.tree,
      terminalOutput: (id) => this.#terminals.outputOf(id),
      sessionNumber: () => this.#session?.number ?? 1,
    };
  }

  /**
   * Returns the real path of a file of the workspace by its path there.
   * @throws RequestError for one that leads out of it
   */
  async resolve(path: string): Promise<string> {
    return this.#files.resolve(join(await this.#files.tree, path));
  }

  serve(app: ClientApp): ClientApp {
    return app
      .onNotification("session/update", ({ params }) => {
        if (this.#isIgnoring || !this.#isOwn(params.sessionId)) return;
        this.#update(params.update);
      })
      .onRequest("session/request_permission", ({ params, signal }) => this.#askPermission(params, signal))
      .onRequest("elicitation/create", ({ params, signal }) =>
        this.#approvals.question(params, this.#whileAsked(signal)),
      )
      .onRequest("fs/read_text_file", ({ params, signal, requestId }) =>
        this.#executeIfAllowed(
          async () => readFileCall(await this.#shown(params.path)),
          signal,
          () =>
            this.#answer(
              requestId,
              () => this.#files.read(params),
              ({ content }) => content.length,
            ),
        ),
      )
      .onRequest("fs/write_text_file", ({ params, signal }) =>
        this.#executeIfAllowed(
          async () => writeFileCall(params, await this.#shown(params.path), this.#agent.assignment.secrets),
          signal,
          () => this.#write(params),
        ),
      )
      .onRequest("terminal/create", ({ params, signal }) => this.#createTerminal(params, signal))
      .onRequest("terminal/output", ({ params, requestId }) =>
        this.#answer(
          requestId,
          () => this.#terminals.output(params.terminalId),
          ({ output }) => output.length,
        ),
      )
      .onRequest("terminal/wait_for_exit", ({ params }) => this.#terminals.waitForExit(params.terminalId))
      .onRequest("terminal/kill", ({ params }) => this.#terminals.kill(params.terminalId))
      .onRequest("terminal/release", ({ params }) => this.#terminals.release(params.terminalId));
  }

  setSession(session: AcpSession, choices: AcpChoices): void {
    this.#session = session;
    this.#choices = choices;
  }

  /** Passes over updates from now on, or does not any more: those of a session that is replayed are known. */
  ignoreUpdates(isIgnoring: boolean): void {
    this.#isIgnoring = isIgnoring;
  }

  /** Takes an input, if it is the outcome of something that the agent has asked for. */
  takeOutcome(input: AgentInput): boolean {
    return this.#approvals.take(input);
  }

  beginTurn(inputId: string): void {
    this.#approvals.beginTurn(inputId);
  }

  /** Takes back what the agent asks for, and will ask for until the end of the turn. */
  cancelTurn(): void {
    this.#turn.abort();
  }

  /**
   * Takes back what the agent asks for in the turn.
   * @returns whether people are asked for any of it until the run waits
   */
  async endTurn(): Promise<boolean> {
    this.#turn.abort();
    this.#turn = new AbortController();
    await this.#approvals.settled();
    return this.#approvals.hasLeft;
  }

  /** Ends what the agent has left behind. */
  async end(): Promise<void> {
    this.cancelTurn();
    await this.#terminals.end();
  }

  #isOwn(sessionId: string): boolean {
    return !this.#session || sessionId === this.#session.id;
  }

  #update(update: SessionUpdate): void {
    if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update")
      this.#calls.add(
        toToolCall({ ...update, content: null, rawOutput: null }, this.#context),
        update.name ?? "",
      );
    const change = describeUpdate(update, this.#context);
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

  async #askPermission(
    { toolCall, options }: RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse> {
    const asked = toToolCall(toolCall, this.#context);
    const known = this.#calls.add({ ...asked, result: "" }, toolCall.name ?? "");
    // What comes with the request is reported as part of the call, too.
    if (asked.id !== "") this.#output.call(asked);
    return { outcome: await this.#decide({ ...known, options, signal: this.#whileAsked(signal) }) };
  }

  /** Makes a large answer once those before are made, and the agent has read enough of them. */
  #answer<T>(id: RequestId, make: () => T | Promise<T>, lengthOf: (answer: T) => number): Promise<T> {
    const answer = this.#lastAnswer.then(async () => {
      await this.#requests.waitForAnswers();
      const made = await make();
      this.#requests.addAnswer(id, lengthOf(made));
      return made;
    });
    this.#lastAnswer = answer.catch(() => undefined);
    return answer;
  }

  async #write(params: WriteTextFileRequest): Promise<object> {
    const written = await this.#files.write(params);
    const kind = written === "created" ? FileChangeKind.CREATED : FileChangeKind.MODIFIED;
    this.#output.block(
      fileChangeBlock({ path: this.#output.mask(shownPath(this.#agent.tree, params.path)), kind, diff: "" }),
    );
    return {};
  }

  async #createTerminal(params: CreateTerminalRequest, signal: AbortSignal): Promise<{ terminalId: string }> {
    const { folder: sessionFolder, assignment } = this.#agent;
    const resolveFolder = () => this.#files.resolve(params.cwd ?? sessionFolder);
    let folder = await resolveFolder();
    const create = async () => ({ terminalId: this.#terminals.create(params, folder) });
    if (this.#approvals.takeAllowedCommand(params, folder)) return create();
    return this.#executeIfAllowed(
      async () => {
        folder = await resolveFolder();
        return runCommandCall(params, shownPath(await this.#files.tree, folder), assignment.secrets);
      },
      signal,
      create,
      async ({ terminalId }) => (await this.#terminals.waitForExit(terminalId)).exitCode === 0,
    );
  }

  #executeIfAllowed<T>(
    describe: () => Promise<ClientCall>,
    signal: AbortSignal,
    act: () => Promise<T>,
    succeeds?: (answer: T) => Promise<boolean>,
  ): Promise<T> {
    return this.#approvals.executeIfAllowed(describe, this.#whileAsked(signal), act, succeeds);
  }

  /** Returns where a path leads to, as people read it. */
  async #shown(path: string): Promise<string> {
    return shownPath(await this.#files.tree, await this.#files.resolve(path));
  }

  #whileAsked(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#turn.signal]);
  }
}
