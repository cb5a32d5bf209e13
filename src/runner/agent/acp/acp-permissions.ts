import { createHash } from "node:crypto";
import type {
  PermissionOption,
  PermissionOptionKind,
  RequestPermissionOutcome,
} from "@agentclientprotocol/sdk";
import { ApprovalOption_Kind as OptionKind } from "#gen/service/v1/approval_pb.js";
import type { Secrets } from "../../../domain/secrets.ts";
import { withEscapes } from "../../../domain/text/deceptive-text.ts";
import type { ToolCall } from "../agent-block.ts";
import { type ApprovalAnswer, type ApprovalRequest, MAX_INPUT_CHARACTERS } from "../approval-requests.ts";

/** A tool call that an agent asks for. */
export interface PermissionRequest {
  /** The call, with all that the agent has reported about it. */
  readonly call: ToolCall;
  /** Name of the tool; empty where the agent tells none. */
  readonly tool: string;
  readonly options: readonly PermissionOption[];
  /** Aborted when the agent asks no longer. */
  readonly signal: AbortSignal;
}

/** Decides what an agent may do. */
export type DecidePermission = (request: PermissionRequest) => Promise<RequestPermissionOutcome>;

export const CANCELLED: RequestPermissionOutcome = { outcome: "cancelled" };

const OPTION_KINDS: Readonly<Record<PermissionOptionKind, OptionKind>> = {
  allow_once: OptionKind.ALLOW_ONCE,
  allow_always: OptionKind.ALLOW_ALWAYS,
  reject_once: OptionKind.REJECT_ONCE,
  reject_always: OptionKind.REJECT_ALWAYS,
};

/** Limits of the contract (RequestApprovalRequest, ApprovalOption, ApprovalToolCall). */
const MAX_OPTIONS = 16;
const MAX_OPTION_ID_CHARACTERS = 128;
const MAX_OPTION_NAME_CHARACTERS = 256;
const MAX_TOOL_CHARACTERS = 256;
const MAX_LOCATIONS = 32;
/** Of an input that is too long to be shown as a whole. */
const MAX_START_CHARACTERS = 32_768;
const MAX_PATH_CHARACTERS = 1_024;

/** Returns what people, or the policy, are asked for a tool call, without the secrets in it. */
export function toApprovalRequest(
  { call, tool, options = [] }: Omit<PermissionRequest, "signal" | "options"> & Partial<PermissionRequest>,
  secrets: Secrets,
): ApprovalRequest {
  const shown = (text: string) => secrets.maskText(text.toWellFormed());
  const { id = "", title = "", kind = 0, input = "", locations = [], diffs = [] } = call;
  const paths = locations.map(({ path = "" }) => shown(path));
  const isShown = paths.length <= MAX_LOCATIONS && paths.every((path) => path.length <= MAX_PATH_CHARACTERS);
  // What is not shown in a place of its own is part of what is asked.
  const rest = [
    ...(input === "" ? diffs.map(({ diff = "" }) => diff) : []),
    ...(isShown ? [] : [JSON.stringify({ locations: paths })]),
  ];
  const asked = [input, ...rest].filter((text) => text !== "").join("\n");
  const value = {
    title: shown(title || tool || id),
    // The contract has the same numbers for both.
    kind: kind as number,
    tool: shown(tool).slice(0, MAX_TOOL_CHARACTERS),
    input: withEscapes(
      asked.length <= MAX_INPUT_CHARACTERS ? shown(asked) : JSON.stringify(startOf(asked, secrets)),
    ),
    locations: isShown ? paths : [],
  };
  return { toolCallId: id, request: { case: "toolCall", value }, options: usableOptions(options, shown) };
}

/** Returns what people are shown of a text that is too long for them; its digest identifies all of it. */
export function startOf(text: string, secrets: Secrets) {
  // Masked before it is cut: the rest of a secret is not recognized.
  const start = secrets.maskText(text.toWellFormed()).slice(0, MAX_START_CHARACTERS).toWellFormed();
  const sha256 = createHash("sha256").update(text).digest("hex");
  return { bytes: Buffer.byteLength(text), sha256, start };
}

/** Returns the agent's choice of an answer: that of the decision, or the first that holds once. */
export function outcomeOf(
  { allowed, optionId }: ApprovalAnswer,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds: readonly PermissionOptionKind[] = allowed
    ? ["allow_once", "allow_always"]
    : ["reject_once", "reject_always"];
  const fitting = options.filter(({ kind }) => kinds.includes(kind));
  const chosen = fitting.find((option) => option.optionId === optionId);
  const once = fitting.find(({ kind }) => kind === kinds[0]);
  const option = chosen ?? once ?? fitting[0];
  return option ? { outcome: "selected", optionId: option.optionId } : CANCELLED;
}

/** Leaves out what the contract does not take: nobody can choose it. */
function usableOptions(options: readonly PermissionOption[], shown: (text: string) => string) {
  return options
    .filter(
      ({ optionId, kind }) =>
        optionId !== "" && optionId.length <= MAX_OPTION_ID_CHARACTERS && OPTION_KINDS[kind],
    )
    .slice(0, MAX_OPTIONS)
    .map(({ optionId, name, kind }) => ({
      id: optionId,
      name: shown(name).slice(0, MAX_OPTION_NAME_CHARACTERS).toWellFormed(),
      kind: OPTION_KINDS[kind],
    }));
}

/** A tool call as it is known, with the name of its tool. */
export interface KnownCall {
  readonly call: ToolCall;
  readonly tool: string;
}

/** Limits of the calls of a run that are kept. */
const MAX_CALLS = 256;
const MAX_CHARACTERS = 8_388_608;

/** Keeps what an agent has reported about its latest tool calls, for permissions that it asks for later. */
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
    const reported = Object.entries({ ...call, input: this.#shownInput(call.input ?? "") }).filter(
      ([, value]) => value && !(Array.isArray(value) && value.length === 0),
    );
    const known: KnownCall = {
      call: { ...before?.call, ...Object.fromEntries(reported), id },
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
