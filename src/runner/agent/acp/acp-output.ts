import type { SecretMask, Secrets } from "../../../domain/secrets.ts";
import {
  cutToolCall,
  errorBlock,
  type ToolCall,
  textBlocks,
  thoughtBlocks,
  toolCallBlock,
} from "../agent-block.ts";
import type { AgentUpdate, BlockContent } from "../agent-reporter.ts";

/** Time for which pieces of a text, or changes of a tool call, are collected, in milliseconds. */
const COLLECT_MS = 200;
/** Number of characters of a text that are not collected any longer. */
const MAX_COLLECTED_CHARACTERS = 32_768;
/** Maximum of the contract for the agent's activity, in characters. */
const MAX_ACTIVITY_CHARACTERS = 256;

/** Receives what an agent answers. */
export interface OutputSink {
  block(block: BlockContent): void;
  update(facts: AgentUpdate): void;
}

type Words = "text" | "thought";

/**
 * Collects the answer of an agent that sends it in small pieces: words become blocks of
 * several pieces, and changes of a tool call that come one after the other become one.
 * Secrets are masked, also those that are split across pieces.
 */
export class AcpOutput {
  readonly #secrets: Secrets;
  readonly #sink: OutputSink;
  #words: { readonly kind: Words; readonly mask: SecretMask; text: string } | undefined;
  /** Changes of tool calls that have not been reported, by their ids. */
  readonly #calls = new Map<string, ToolCall>();
  #timer: NodeJS.Timeout | undefined;

  constructor(secrets: Secrets, sink: OutputSink) {
    this.#secrets = secrets;
    this.#sink = sink;
  }

  words(kind: Words, text: string): void {
    if (this.#words?.kind !== kind) {
      this.flush();
      this.#words = { kind, mask: this.#secrets.stream(), text: "" };
    }
    this.#words.text += this.#words.mask.write(Buffer.from(text.toWellFormed())).toString();
    if (this.#words.text.length > MAX_COLLECTED_CHARACTERS) this.#tellWords();
    this.#schedule();
  }

  /** Takes a change of a tool call, without secrets: it is cut before it is reported. */
  call(call: ToolCall): void {
    this.#endWords();
    const id = call.id ?? "";
    const before = this.#calls.get(id);
    // A state must be seen, however short it was.
    if (before?.state && call.state && before.state !== call.state) this.#tellCall(id);
    const rest = this.#calls.get(id) ?? {};
    const changed = Object.entries(call).filter(
      ([, value]) => value && !(Array.isArray(value) && value.length === 0),
    );
    this.#calls.set(id, cutToolCall({ ...rest, ...Object.fromEntries(changed), id }));
    this.#schedule();
  }

  /** Takes a block that follows everything before. */
  block(block: BlockContent): void {
    this.flush();
    this.#tell(block);
  }

  /** Returns a value with its texts masked: before it is cut, since half a secret is not recognized. */
  mask<T>(value: T): T {
    return this.#secrets.maskTexts(value);
  }

  error(message: string): void {
    this.block(errorBlock(this.#secrets.maskText(message)));
  }

  activity(text: string): void {
    this.#sink.update({ currentActivity: this.#secrets.maskText(text).slice(0, MAX_ACTIVITY_CHARACTERS) });
  }

  update(facts: AgentUpdate): void {
    this.#sink.update(facts);
  }

  /** Tells everything that was collected. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#endWords();
    this.#tellCalls();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#tellWords();
      this.#tellCalls();
    }, COLLECT_MS);
  }

  #tellCalls(): void {
    for (const id of [...this.#calls.keys()]) this.#tellCall(id);
  }

  #tellCall(id: string): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (call) this.#tell(toolCallBlock(call));
  }

  #endWords(): void {
    if (!this.#words) return;
    this.#words.text += this.#words.mask.end().toString();
    this.#tellWords();
    this.#words = undefined;
  }

  #tellWords(): void {
    if (!this.#words) return;
    const { kind, text } = this.#words;
    this.#words.text = "";
    const blocks = kind === "text" ? textBlocks(text) : thoughtBlocks(text);
    for (const block of blocks) this.#sink.block(block);
  }

  #tell(block: BlockContent): void {
    this.#sink.block(this.#secrets.maskTexts(block));
  }
}
