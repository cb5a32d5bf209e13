import { setTimeout as delay } from "node:timers/promises";
import {
  type AgentExecution,
  type AgentInput,
  AgentInputReceipt,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { isTemporary, messageOf } from "../client/call.ts";
import type { ConversationClient } from "./conversation-client.ts";
import { HELP, type TypedLine } from "./typed-line.ts";
import { type ChatView, isReview, wordsOf } from "./view.ts";

/** Silence after which output counts as complete: a line that an agent began, and the answer to a pipe's last line. */
const QUIET_MS = 500;

/**
 * Number of silences after which a state is shown even if earlier output is still missing, for example because its
 * blocks were deleted.
 */
const MAX_SILENCES = 10;

/** The output of a screen: {@link ChatView} as text for people. */
export interface RunView extends Pick<ChatView, "note" | "block" | "sent" | "run" | "inputs" | "endLine"> {
  /**
   * True to show a run's state only after a silence, so that its earlier blocks come first: a stream starts with the
   * run.
   */
  readonly showsStateLast: boolean;
}

/** Shows an execution and acts on it. */
export class Screen {
  readonly #conversation: ConversationClient;
  readonly #view: RunView;
  /** The texts of sent inputs, by id. */
  readonly #inputTexts = new Map<string, string>();
  #run: AgentExecution | undefined;
  /** The run whose state is not shown yet because earlier blocks come first; a later state replaces it. */
  #unshownRun: AgentExecution | undefined;
  #shownPhase: Phase | undefined;
  #lastEventAt = performance.now();
  #silence: NodeJS.Timeout | undefined;

  constructor(conversation: ConversationClient, view: RunView) {
    this.#conversation = conversation;
    this.#view = view;
  }

  get isWell(): boolean {
    return this.#run?.status?.failureMessage === "";
  }

  async show(signal: AbortSignal): Promise<void> {
    for await (const event of this.#conversation.watch(signal, (text) => this.#view.note(`[${text}]`))) {
      this.#lastEventAt = performance.now();
      this.#awaitSilence(MAX_SILENCES);
      if (event.case === "block") {
        await this.#loadInputTexts(event.value.inputId);
        this.#view.block(event.value, (id) => this.#inputTexts.get(id));
      }
      if (event.case === "agentExecution") {
        this.#run = event.value;
        this.#unshownRun = event.value;
      }
      if (!this.#view.showsStateLast) await this.#showState();
    }
    clearTimeout(this.#silence);
    this.#silence = undefined;
    await this.#showState();
    await this.#showReviews();
    this.#view.endLine();
  }

  #awaitSilence(silences: number): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => void this.#endSilence(silences - 1), QUIET_MS).unref();
  }

  /** Ends an unfinished line. Then shows the state, or waits for the output that comes before it. */
  async #endSilence(silencesLeft: number): Promise<void> {
    const silence = this.#silence;
    this.#view.endLine();
    const isEarly = silencesLeft > 0 && (await this.#isOutputMissing());
    // New output has arrived meanwhile, or the run has ended.
    if (this.#silence !== silence) return;
    if (isEarly) this.#awaitSilence(silencesLeft);
    else await this.#showState();
  }

  /** Returns whether output that belongs before the state is still missing. */
  async #isOutputMissing(): Promise<boolean> {
    const status = this.#unshownRun?.status;
    if (!status) return false;
    if (this.#conversation.isCatchingUp) return true;
    const { phase, lostTurn, pendingApprovalIds } = status;
    // A run also waits before its first message, and as soon as its runner has reported the end of a turn.
    if (phase !== Phase.WAITING_FOR_INPUT || lostTurn?.holdsQueue || pendingApprovalIds.length > 0)
      return false;
    const hasAnswered = await this.#conversation.hasAnsweredAll().catch(() => true);
    return !hasAnswered;
  }

  async #showState(): Promise<void> {
    const run = this.#unshownRun;
    if (!run) return;
    this.#unshownRun = undefined;
    const [before, phase] = [this.#shownPhase, run.status?.phase];
    this.#shownPhase = phase;
    // Earlier inputs are shown with their answers.
    if (before !== undefined && before !== phase) await this.#showReviews();
    this.#view.run(run);
  }

  /** Shows the reviews that the agent received, including those that it answers only with actions. */
  async #showReviews(): Promise<void> {
    // If the server is unreachable, they are shown later.
    const inputs = await this.#conversation.inputs(true).catch((): AgentInput[] => []);
    for (const input of inputs)
      if (isReview(input) && input.receipt !== AgentInputReceipt.QUEUED) this.#view.sent(input);
  }

  /** @returns whether the chat continues */
  async handleLine(line: TypedLine): Promise<boolean> {
    if (line.kind === "leave") return false;
    try {
      await this.#act(line);
    } catch (error) {
      const why = messageOf(error);
      this.#view.note(
        isTemporary(error)
          ? `not done, the server cannot be reached (${why}): type it again when it is back`
          : why,
      );
    }
    return true;
  }

  /** Loads the text of an input that was sent earlier, or by another client. */
  async #loadInputTexts(inputId: string): Promise<void> {
    if (inputId === "" || this.#inputTexts.has(inputId)) return;
    // If the server is unreachable, the id is shown instead.
    const inputs = await this.#conversation.inputs(true).catch((): AgentInput[] => []);
    const isEarlier = !inputs.some(({ id }) => id === inputId);
    const earlier = isEarlier ? await this.#conversation.earlierInputs().catch(() => []) : [];
    this.#inputTexts.set(inputId, inputId);
    for (const input of [...earlier, ...inputs]) this.#inputTexts.set(input.id, wordsOf(input));
  }

  /** Waits until the agent has answered everything and waits for input, or a lost turn needs a decision. */
  async untilAnswered(signal: AbortSignal): Promise<void> {
    const isQuiet = () => performance.now() - this.#lastEventAt > QUIET_MS;
    while (!signal.aborted) {
      const isWaiting = this.#run?.status?.phase === Phase.WAITING_FOR_INPUT;
      const isHeld = this.#run?.status?.lostTurn?.holdsQueue ?? false;
      if (isWaiting && isQuiet() && (isHeld || (await this.#conversation.hasAnsweredAll()))) return;
      await delay(QUIET_MS / 2, undefined, { signal }).catch(() => undefined);
    }
  }

  async #act(line: TypedLine): Promise<void> {
    const { kind } = line;
    switch (kind) {
      case "message": {
        const id = await this.#conversation.sendMessage(line.text);
        this.#inputTexts.set(id, line.text);
        this.#lastEventAt = performance.now();
        return this.#view.note(`sent ${id}`);
      }
      case "queue":
        return this.#view.inputs(await this.#conversation.inputs(false), "nothing waits");
      case "inputs": {
        const inputs = await this.#conversation.inputs(true);
        return this.#view.inputs(inputs, "nothing was sent");
      }
      case "steer":
        return this.#control({ case: "steerQueuedMessage", value: { userInputId: await this.#id(line.id) } });
      case "delete":
        return this.#control({
          case: "deleteQueuedMessage",
          value: { userInputId: await this.#id(line.id) },
        });
      case "move": {
        const beforeUserInputId = line.beforeId === "" ? "" : await this.#id(line.beforeId);
        const userInputId = await this.#id(line.id);
        return this.#control({ case: "moveQueuedMessage", value: { userInputId, beforeUserInputId } });
      }
      case "set-goal": {
        const value = { objective: line.objective };
        return this.#control({ case: "goal", value: { action: { case: "set", value } } });
      }
      case "goal":
        return this.#control({ case: "goal", value: { action: { case: line.action, value: {} } } });
      case "compact":
        return this.#control({ case: "compact", value: {} });
      case "retry":
        return this.#control({ case: "retryTurn", value: {} });
      case "go-on":
        return this.#control({ case: "goOn", value: {} });
      case "stop":
        return this.#conversation.stop();
      case "help":
        return this.#view.note(HELP.trimEnd());
      case "mistake":
        return this.#view.note(line.why);
    }
  }

  #control(control: Parameters<ConversationClient["sendControl"]>[0]): Promise<void> {
    return this.#conversation.sendControl(control);
  }

  #id(beginning: string): Promise<string> {
    return this.#conversation.queuedId(beginning);
  }
}
