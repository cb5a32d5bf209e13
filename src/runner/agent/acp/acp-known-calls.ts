import type { Secrets } from "../../../domain/secrets.ts";
import type { ToolCall } from "../agent-block.ts";
import { MAX_INPUT_CHARACTERS } from "../approval-requests.ts";
import { startOf } from "./acp-permissions.ts";

/** A tool call as it is known, with the name of its tool. */
export interface KnownCall {
  readonly call: ToolCall;
  readonly tool: string;
}

/** Limits of the calls of a run that are kept. */
const MAX_CALLS = 256;
const MAX_CHARACTERS = 8_388_608;

/** Keeps what an agent has told of its latest tool calls, for permissions that it asks for later. */
export class KnownCalls {
  readonly #secrets: Secrets;
  readonly #calls = new Map<string, KnownCall & { readonly characters: number }>();
  #characters = 0;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  /** Adds what is new of a call, and returns all that is known of it. */
  add(call: ToolCall, tool: string): KnownCall {
    const id = call.id ?? "";
    const before = this.#calls.get(id);
    const told = Object.entries({ ...call, input: this.#shownInput(call.input ?? "") }).filter(
      ([, value]) => value && !(Array.isArray(value) && value.length === 0),
    );
    const known: KnownCall = {
      call: { ...before?.call, ...Object.fromEntries(told), id },
      tool: tool || (before?.tool ?? ""),
    };
    const characters = JSON.stringify(known).length;
    this.#delete(id);
    this.#calls.set(id, { ...known, characters });
    this.#characters += characters;
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= MAX_CALLS && this.#characters <= MAX_CHARACTERS) break;
      this.#delete(oldest);
    }
    return known;
  }

  /** Returns what people would be shown of an input: the rest of a long one is not kept. */
  #shownInput(input: string): string {
    return input.length <= MAX_INPUT_CHARACTERS ? input : JSON.stringify(startOf(input, this.#secrets));
  }

  #delete(id: string): void {
    this.#characters -= this.#calls.get(id)?.characters ?? 0;
    this.#calls.delete(id);
  }
}
