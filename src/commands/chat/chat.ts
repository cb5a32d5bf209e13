import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentExecution, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { StartError } from "../start-error.ts";
import {
  ConversationClient,
  type ConversationOptions,
  isTemporary,
  messageOf,
} from "./conversation-client.ts";
import { HELP, parseTypedLine, type TypedLine } from "./typed-line.ts";
import { ChatView, wordsOf } from "./view.ts";

export interface ChatOptions extends ConversationOptions {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable;
}

/**
 * Time of silence after which output counts as finished: a line that an agent
 * began, and the answer to the last line of a pipe.
 */
const QUIET_MS = 500;
/** Clears the terminal from the beginning of the row. The line being typed appears again below the output. */
const CLEAR = "\r\u{1b}[J";

/**
 * Shows an agent's execution in progress and sends it the typed lines, until the
 * execution stops or the user leaves. Input from a pipe is left at its end, after
 * the answer to its last line.
 *
 * @returns whether the execution is still open or has ended well
 * @throws StartError when the execution cannot be watched, the server could not
 *   be reached for too long, or the user leaves while it cannot be reached
 */
export async function chat({ input, output, ...place }: ChatOptions): Promise<boolean> {
  const isTyped = input.isTTY === true;
  const conversation = new ConversationClient(place);
  const leaving = new AbortController();
  const lines = createInterface({ input, ...(isTyped && { output, terminal: true }), prompt: "> " });
  const view = new ChatView((text) => {
    if (!isTyped) return output.write(text);
    // A long line takes several rows. Before readline prints it again it moves up by the rows that it
    // knows of: not those of a paste.
    const { rows } = lines.getCursorPos();
    const { prevRows = rows } = lines as { readonly prevRows?: number };
    output.write(`${rows > 0 ? `\u{1b}[${rows}A` : ""}${CLEAR}${text}${"\n".repeat(prevRows)}`);
    return lines.prompt(true);
  });
  const screen = new Screen(conversation, view);
  lines.on("SIGINT", () => lines.close());
  const typing = (async () => {
    for await (const line of lines) {
      if (!(await screen.handleLine(parseTypedLine(line)))) return;
    }
    if (!isTyped) await screen.untilAnswered(leaving.signal);
  })().finally(() => leaving.abort());
  // A failure reaches the code that awaits it below; until then it is no unhandled rejection.
  typing.catch(() => undefined);
  try {
    await screen.show(leaving.signal);
  } finally {
    leaving.abort();
    lines.close();
    input.destroy();
  }
  await typing;
  if (conversation.isAway) {
    throw new StartError(
      `the chat was left while the server ${place.server} could not be reached: what was typed last may not have been sent`,
    );
  }
  return screen.isWell;
}

/** The shown execution, and the actions on it. */
class Screen {
  readonly #conversation: ConversationClient;
  readonly #view: ChatView;
  /** The words of sent inputs, by id. */
  readonly #inputTexts = new Map<string, string>();
  #run: AgentExecution | undefined;
  #lastEventAt = performance.now();
  #lineEnd: NodeJS.Timeout | undefined;

  constructor(conversation: ConversationClient, view: ChatView) {
    this.#conversation = conversation;
    this.#view = view;
  }

  get isWell(): boolean {
    return this.#run?.status?.failureMessage === "";
  }

  async show(signal: AbortSignal): Promise<void> {
    for await (const event of this.#conversation.watch(signal, (text) => this.#view.note(`[${text}]`))) {
      this.#lastEventAt = performance.now();
      clearTimeout(this.#lineEnd);
      this.#lineEnd = setTimeout(() => this.#view.endLine(), QUIET_MS).unref();
      if (event.case === "block") {
        await this.#loadInputTexts(event.value.inputId);
        this.#view.block(event.value, (id) => this.#inputTexts.get(id));
      }
      if (event.case === "agentExecution") {
        this.#run = event.value;
        this.#view.run(event.value);
      }
    }
    clearTimeout(this.#lineEnd);
    this.#view.endLine();
  }

  /** @returns whether the chat goes on */
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

  /** Finds the words of an input that was sent before, or from elsewhere. */
  async #loadInputTexts(inputId: string): Promise<void> {
    if (inputId === "" || this.#inputTexts.has(inputId)) return;
    // While the server cannot be reached, the id is shown instead.
    const inputs = await this.#conversation.inputs(true).catch(() => []);
    this.#inputTexts.set(inputId, inputId);
    for (const input of inputs) this.#inputTexts.set(input.id, wordsOf(input));
  }

  async untilAnswered(signal: AbortSignal): Promise<void> {
    const isQuiet = () => performance.now() - this.#lastEventAt > QUIET_MS;
    while (!signal.aborted) {
      const isWaiting = this.#run?.status?.phase === Phase.WAITING_FOR_INPUT;
      if (isWaiting && isQuiet() && (await this.#conversation.hasReceivedAll())) return;
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
