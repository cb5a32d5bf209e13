import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type AnyMessage,
  type ClientApp,
  type ClientContext,
  type PromptResponse,
  RequestError,
} from "@agentclientprotocol/sdk";
import {
  ReportAgentRequest_State as State,
  type StreamInputsResponse,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkFailure } from "../../protocol/work-failure.ts";
import { truncate } from "../agent-block.ts";
import { modesOf, settingsOf } from "../agent-input-encoding.ts";
import type { RunningAgent } from "../running-agent.ts";
import { AcpChoices } from "./acp-choices.ts";
import { forkAbilityOf, offersFork, recordTurn } from "./acp-fork.ts";
import type { AcpLimits } from "./acp-limits.ts";
import type { OpenRequests } from "./acp-open-requests.ts";
import { AcpOutput } from "./acp-output.ts";
import { AcpServices } from "./acp-services.ts";
import { type AcpPeer, type AcpSession, initialize, openSession, usableServers } from "./acp-session.ts";
import { agentIsGone, promptOf, STOP_REASONS } from "./acp-turn.ts";

/** Number of characters that are shown of an unreadable line. */
const MAX_SHOWN_CHARACTERS = 200;
/** Maximum number of unreadable lines that are reported. */
const MAX_UNREADABLE_LINES = 20;

/** The conversation of a run with its agent: its session, and one turn after the other. */
export class AcpConversation {
  readonly #agent: RunningAgent;
  readonly #limits: AcpLimits;
  readonly #output: AcpOutput;
  readonly #services: AcpServices;
  /** Aborted when the agent will get no more input. */
  readonly #inputEnd = new AbortController();
  /** Aborted when the program has exited, or must exit. */
  readonly #ended = new AbortController();
  /** Inputs of the turns that follow the current one. */
  readonly #next: StreamInputsResponse[] = [];
  readonly #failed = Promise.withResolvers<never>();
  #peer: AcpPeer | undefined;
  #session: AcpSession | undefined;
  #choices: AcpChoices | undefined;
  /** The turns in progress; undefined between turns. */
  #turning: Promise<void> | undefined;
  #inputId = "";
  /** The input whose prompt is being written. */
  #promptedId: string | undefined;
  #unreadableLines = 0;

  constructor(agent: RunningAgent, requests: OpenRequests, limits: AcpLimits) {
    this.#agent = agent;
    this.#limits = limits;
    const { report, assignment } = agent;
    this.#output = new AcpOutput(assignment.secrets, {
      block: (block) => report.block({ block, inputId: this.#inputId }),
      update: (facts) => report.update(facts),
    });
    this.#services = new AcpServices(agent, this.#output, requests);
    // Failures are handled in converse; until it awaits this promise, they must not be unhandled rejections.
    this.#failed.promise.catch(() => undefined);
  }

  get isInTurn(): boolean {
    return this.#turning !== undefined;
  }

  /** Returns the input that began the current or the last turn; empty before the first. */
  get inputId(): string {
    return this.#inputId;
  }

  /** Registers the handlers of the agent's requests with an app. */
  serve(app: ClientApp): ClientApp {
    return this.#services.serve(app);
  }

  /** Runs the conversation until the program has exited, or must exit. */
  async converse(agent: ClientContext): Promise<void> {
    const { assignment, state, report, facts, becomesReady, folder } = this.#agent;
    const { mcpServers, environment } = this.#agent;
    await state.countStart();
    const { startMs = 120_000 } = this.#limits;
    const timeout = AbortSignal.timeout(startMs);
    const signal = AbortSignal.any([timeout, this.#ended.signal]);
    try {
      this.#peer = await initialize(agent, signal);
      report.update({ forkAbility: forkAbilityOf(this.#peer.capabilities) });
      const { servers, problems } = usableServers(
        mcpServers,
        this.#peer.capabilities.mcpCapabilities,
        environment,
        assignment.secrets,
      );
      for (const problem of problems) this.#output.error(problem);
      this.#session = await openSession(this.#peer, {
        folder,
        mcpServers: servers,
        stateFolder: state.folder,
        mustContinue: facts.resumedFrom !== "",
        fork: facts.forkedFrom && {
          stateFolder: state.folderOf(facts.forkedFrom.conversationId),
          turn: facts.forkedFrom,
        },
        signal,
        onReplay: (isReplaying) => this.#services.ignoreUpdates(isReplaying),
      });
    } catch (error) {
      if (timeout.aborted && !this.#ended.signal.aborted)
        throw new WorkFailure(
          "agent_failed",
          `the agent did not open a session within ${startMs / 1_000} s: does its command speak the Agent Client Protocol?`,
        );
      throw this.#asFailure(error);
    }
    this.#choices = new AcpChoices(agent, this.#session);
    this.#services.setSession(this.#session, this.#choices);
    if (this.#session.lost) this.#output.error(this.#session.lost);
    await this.#choose(facts.mode === "" || facts.mode === "unspecified" ? [] : [facts.mode], facts.settings);
    if (this.#inputEnd.signal.aborted) return;
    this.#tellResumable();
    if (becomesReady) {
      this.#output.flush();
      report.setState(State.WAITING);
    }
    await Promise.race([this.#takeInputs(), this.#failed.promise]);
  }

  /** Cancels the current turn; resolves when the program may be asked to exit. */
  async stop(): Promise<void> {
    this.#inputEnd.abort();
    this.#next.length = 0;
    if (!this.#turning) return;
    this.#cancelTurn();
    await this.#turning.catch(() => undefined);
  }

  /** Cleans up everything that the agent has left, once its program has exited. */
  async end(): Promise<void> {
    this.#inputEnd.abort();
    this.#ended.abort();
    await this.#services.end();
    await this.#turning?.catch(() => undefined);
    this.#output.flush();
  }

  /** Called when a message was written to the program's input. */
  onWritten(message: AnyMessage): void {
    if (!("method" in message) || message.method !== "session/prompt" || this.#promptedId === undefined)
      return;
    this.#agent.report.seen(this.#promptedId);
    this.#promptedId = undefined;
  }

  /** Called for output that is not a message. */
  onUnreadable(why: string, text: string): void {
    this.#unreadableLines++;
    if (this.#unreadableLines > MAX_UNREADABLE_LINES) return;
    const last = this.#unreadableLines === MAX_UNREADABLE_LINES ? "; no more of this kind is reported" : "";
    const shown = truncate(this.#agent.assignment.secrets.maskText(text), MAX_SHOWN_CHARACTERS);
    this.#output.error(`the agent's output breaks its form: ${why}${shown && `: ${shown}`}${last}`);
  }

  /** Called when the agent reads no responses and the limit of its open requests is reached. */
  onUnread(why: string): void {
    this.#failed.reject(new WorkFailure("agent_failed", why));
  }

  async #takeInputs(): Promise<void> {
    for await (const handed of this.#agent.inputs(this.#inputEnd.signal)) {
      if (!handed.input || this.#services.takeOutcome(handed.input)) continue;
      if (this.#turning) {
        this.#next.push(handed);
        if (handed.steer) this.#cancelTurn();
        continue;
      }
      this.#turning = this.#takeTurns(handed);
      this.#turning.catch((error) => this.#failed.reject(this.#asFailure(error)));
    }
    await this.#turning;
  }

  async #takeTurns(first: StreamInputsResponse): Promise<void> {
    const { report } = this.#agent;
    for (let handed: StreamInputsResponse | undefined = first; handed; handed = this.#next.shift()) {
      report.setState(State.RUNNING);
      const hasLeftQuestions = await this.#takeTurn(handed);
      if (this.#ended.signal.aborted) return;
      // The service withdraws the requests of a turn once the end of the turn is reported.
      if (hasLeftQuestions && this.#next.length > 0) report.setState(State.WAITING);
    }
    this.#turning = undefined;
    this.#tellResumable();
    if (!this.#inputEnd.signal.aborted) report.setState(State.WAITING);
  }

  /** Reports whether another process of the agent can resume its session between turns. */
  #tellResumable(): void {
    const { sessionCapabilities, loadSession = false } = this.#peer?.capabilities ?? {};
    const canResume = (loadSession || Boolean(sessionCapabilities?.resume)) && !this.#session?.lost;
    this.#agent.report.update({ canResume });
  }

  /** @returns whether people still have open requests for which the turn no longer waits */
  async #takeTurn({ input, turnOptions, extAgentSettings }: StreamInputsResponse): Promise<boolean> {
    if (!input || !this.#peer || !this.#session) return false;
    const { state, isStep } = this.#agent;
    this.#output.flush();
    this.#inputId = input.id;
    const { agent, capabilities } = this.#peer;
    const abilities = {
      capabilities: capabilities.promptCapabilities ?? {},
      commands: this.#services.commands,
      resolve: (path: string) => this.#services.resolve(path),
    };
    const prompt = await promptOf(input, abilities, state.storeImage);
    await this.#choose(
      turnOptions ? modesOf(turnOptions) : [],
      extAgentSettings ? settingsOf(extAgentSettings) : {},
    );
    this.#services.beginTurn(input.id);
    if (offersFork(capabilities))
      await recordTurn(state.folder, { runId: this.#agent.facts.runId, inputId: input.id });
    this.#promptedId = input.id;
    let hasLeftQuestions = false;
    try {
      const response = await agent.request("session/prompt", { sessionId: this.#session.id, prompt });
      // Updates that came before the response are handled in later steps of the event loop.
      await nextTurn();
      this.#tellEnd(response);
    } catch (error) {
      if (!(error instanceof RequestError) || this.#ended.signal.aborted || agentIsGone(error)) throw error;
      await nextTurn();
      if (isStep) throw this.#asFailure(error);
      this.#output.error(`the turn failed: ${error.message}`);
    } finally {
      hasLeftQuestions = await this.#services.endTurn();
      this.#output.flush();
    }
    return hasLeftQuestions;
  }

  #tellEnd({ stopReason }: PromptResponse): void {
    const why = STOP_REASONS[stopReason];
    if (why === undefined) return;
    this.#output.error(why);
    if (this.#agent.isStep) throw new WorkFailure("agent_failed", why);
  }

  async #choose(
    modes: readonly string[],
    settings: Parameters<AcpChoices["chooseSettings"]>[0],
  ): Promise<void> {
    try {
      for (const mode of modes) {
        const problem = await this.#choices?.chooseMode(mode);
        if (problem) this.#output.error(problem);
      }
      await this.#choices?.chooseSettings(settings);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#output.error(`the agent refused a mode or setting: ${error.message}`);
    }
  }

  /** Converts an agent's error to the failure of its run, without secrets. */
  #asFailure(error: unknown): unknown {
    const { secrets } = this.#agent.assignment;
    if (error instanceof WorkFailure)
      return new WorkFailure(error.reason, secrets.maskText(error.message), error.retriable);
    if (!(error instanceof RequestError)) return error;
    const message = `the agent answered an error: ${secrets.maskText(error.message)}`;
    return new WorkFailure("agent_failed", truncate(message, 4_096));
  }

  #cancelTurn(): void {
    const turning = this.#turning;
    if (!this.#session || !turning) return;
    this.#services.cancelTurn();
    void this.#peer?.agent.notify("session/cancel", { sessionId: this.#session.id }).catch(() => undefined);
    const { cancelMs = 30_000 } = this.#limits;
    const cancelled = this.#inputId;
    const timer = setTimeout(() => {
      if (this.#turning !== turning || this.#inputId !== cancelled) return;
      this.#failed.reject(
        new WorkFailure("agent_failed", `the agent did not end its turn within ${cancelMs / 1_000} s`),
      );
    }, cancelMs);
    timer.unref();
    void turning.finally(() => clearTimeout(timer)).catch(() => undefined);
  }
}
