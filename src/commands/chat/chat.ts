import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentExecution, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { StartError } from "../start-error.ts";
import { ConversationClient, isTemporary, messageOf, type TalkOptions } from "./talk.ts";
import { HELP, parseTypedLine, type TypedLine } from "./typed-line.ts";
import { ChatView, wordsOf } from "./view.ts";

export interface ChatOptions extends TalkOptions {
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
  const talk = new ConversationClient(place);
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
  const screen = new Screen(talk, view);
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
  if (talk.isAway) {
    throw new StartError(
      `the chat was left while the server ${place.server} could not be reached: what was typed last may not have been sent`,
    );
  }
  return screen.isWell;
}

/** The shown execution, and the actions on it. */
class Screen {
  readonly #talk: ConversationClient;
  readonly #view: ChatView;
  /** The words of sent inputs, by id. */
  readonly #said = new Map<string, string>();
  #run: AgentExecution | undefined;
  #newsAt = performance.now();
  #lineEnd: NodeJS.Timeout | undefined;

  constructor(talk: ConversationClient, view: ChatView) {
    this.#talk = talk;
    this.#view = view;
  }

  get isWell(): boolean {
    return this.#run?.status?.failureMessage === "";
  }

  async show(signal: AbortSignal): Promise<void> {
    for await (const news of this.#talk.watch(signal, (text) => this.#view.note(`[${text}]`))) {
      this.#newsAt = performance.now();
      clearTimeout(this.#lineEnd);
      this.#lineEnd = setTimeout(() => this.#view.endLine(), QUIET_MS).unref();
      if (news.case === "block") {
        await this.#learn(news.value.inputId);
        this.#view.block(news.value, (id) => this.#said.get(id));
      }
      if (news.case === "agentExecution") {
        this.#run = news.value;
        this.#view.run(news.value);
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
  async #learn(inputId: string): Promise<void> {
    if (inputId === "" || this.#said.has(inputId)) return;
    // While the server cannot be reached, the id is shown instead.
    const inputs = await this.#talk.inputs(true).catch(() => []);
    this.#said.set(inputId, inputId);
    for (const input of inputs) this.#said.set(input.id, wordsOf(input));
  }

  async untilAnswered(signal: AbortSignal): Promise<void> {
    const isQuiet = () => performance.now() - this.#newsAt > QUIET_MS;
    while (!signal.aborted) {
      const isWaiting = this.#run?.status?.phase === Phase.WAITING_FOR_INPUT;
      if (isWaiting && isQuiet() && (await this.#talk.hasReceivedAll())) return;
      await delay(QUIET_MS / 2, undefined, { signal }).catch(() => undefined);
    }
  }

  async #act(line: TypedLine): Promise<void> {
    const { kind } = line;
    switch (kind) {
      case "message": {
        const id = await this.#talk.sendMessage(line.text);
        this.#said.set(id, line.text);
        this.#newsAt = performance.now();
        return this.#view.note(`sent ${id}`);
      }
      case "queue":
        return this.#view.inputs(await this.#talk.inputs(false), "nothing waits");
      case "inputs": {
        const inputs = await this.#talk.inputs(true);
        return this.#view.inputs(inputs, "nothing was sent");
      }
      case "steer":
        return this.#order({ case: "steerQueuedMessage", value: { userInputId: await this.#id(line.id) } });
      case "delete":
        return this.#order({ case: "deleteQueuedMessage", value: { userInputId: await this.#id(line.id) } });
      case "move": {
        const beforeUserInputId = line.beforeId === "" ? "" : await this.#id(line.beforeId);
        const userInputId = await this.#id(line.id);
        return this.#order({ case: "moveQueuedMessage", value: { userInputId, beforeUserInputId } });
      }
      case "set-goal": {
        const value = { objective: line.objective };
        return this.#order({ case: "goal", value: { action: { case: "set", value } } });
      }
      case "goal":
        return this.#order({ case: "goal", value: { action: { case: line.action, value: {} } } });
      case "compact":
        return this.#order({ case: "compact", value: {} });
      case "stop":
        return this.#talk.stop();
      case "help":
        return this.#view.note(HELP.trimEnd());
      case "mistake":
        return this.#view.note(line.why);
    }
  }

  #order(control: Parameters<ConversationClient["sendControl"]>[0]): Promise<void> {
    return this.#talk.sendControl(control);
  }

  #id(beginning: string): Promise<string> {
    return this.#talk.queuedId(beginning);
  }
}
