import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type UserInputBlock as Block,
  UserInputBlockSchema as BlockSchema,
  type UserInputBlock_Input as Part,
  UserInputBlock_InputSchema as PartSchema,
  AgentInputReceipt as Receipt,
} from "#gen/service/v1/agent_pb.js";
import type { SendToAgentExecutionRequest } from "#gen/service/v1/agent_service_pb.js";
import { type DomainError, permissionDenied, valueUnusable } from "../error.ts";
import type { Caller } from "../identity/caller.ts";
import { requireNoDeceptiveText } from "../text/deceptive-text.ts";

/** Facts about a message that the server adds. */
export interface MessageFacts {
  /** Id for a message whose sender chose none. */
  readonly id: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  /** True to keep the message's metadata: that of integrations and runners is kept, a person's is dropped. */
  readonly keepsMetadata: boolean;
}

/**
 * Requires that messages of agents and wake events come from a runner, which sends them for its
 * agent executions.
 * @throws DomainError PERMISSION_DENIED
 */
export function requireInputKind(
  { role }: Pick<Caller, "role">,
  { input }: Pick<SendToAgentExecutionRequest, "input">,
): void {
  if (role === "runner" || (input.case !== "agentMessage" && input.case !== "wakeEvent")) return;
  const message =
    input.case === "agentMessage"
      ? "agent messages come from agent runs, by the runner that they are on: send userInput instead"
      : "wake events come from the service and from runners: send userInput instead";
  throw permissionDenied("send_to_agent_execution", message);
}

/**
 * Requires that an agent execution cannot have personal secrets of its creator, before somebody else
 * sends to it by the role of a group.
 * @param secrets personal secrets of the creators of the execution and of its environment
 * @throws DomainError PERMISSION_DENIED
 */
export function requireNoOwnSecrets(secrets: readonly unknown[]): void {
  if (secrets.length === 0) return;
  throw permissionDenied(
    "send_to_agent_execution",
    "the agent run has secrets that are its creator's own, which are not shared with it: only its creator and administrators send to it",
  );
}

/**
 * Returns a message as it is stored: in the newer form, without the fields that its sender cannot
 * set.
 * @throws DomainError TEXT_DECEPTIVE; VALUE_UNUSABLE for an image that is not of its type
 */
export function acceptedMessage(sent: Block, { id, now, keepsMetadata }: MessageFacts): Block {
  const parts = partsOf(sent);
  for (const { path, part } of parts) requireValidPart(part, path);
  const { metadata } = sent;
  return create(BlockSchema, {
    id: sent.id || id,
    inputs: parts.map(({ part }) => (keepsMetadata ? part : withoutReference(part))),
    createdAt: timestampFromMs(now),
    ...(keepsMetadata && metadata && { metadata }),
  });
}

/** Returns the parts of a message with their JSON paths, in either form of the message. */
function partsOf({ input, inputs }: Block): { readonly path: string; readonly part: Part }[] {
  if (input.case !== undefined) {
    return [{ path: `userInput.${input.case}`, part: create(PartSchema, { input }) }];
  }
  return inputs.map((part, index) => ({
    path: `userInput.inputs[${index}].${part.input.case}`,
    part,
  }));
}

function requireValidPart({ input }: Part, path: string): void {
  if (input.case === "text") requireNoDeceptiveText(input.value.content, `${path}.content`);
  if (input.case !== "image") return;
  const { data, mimeType } = input.value;
  if (hasImageType(data, mimeType)) return;
  throw valueUnusable(`${path}.data`, `${path}.data does not begin as a file of the type ${mimeType} does`);
}

function withoutReference(part: Part): Part {
  const { input } = part;
  if (input.case !== "image" || input.value.dataRef === "") return part;
  return create(PartSchema, { input: { case: "image", value: { ...input.value, dataRef: "" } } });
}

/**
 * The first bytes of files of each type: PNG, section 5.2 of its specification; JPEG, the marker
 * SOI and the next one.
 */
const FIRST_BYTES: ReadonlyMap<string, readonly number[]> = new Map([
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
]);

/**
 * Returns whether the first bytes of a file match the type that it claims; false for any other
 * type.
 */
export function hasImageType(data: Uint8Array, mimeType: string): boolean {
  return FIRST_BYTES.get(mimeType)?.every((byte, index) => data[index] === byte) ?? false;
}

/** Returns the error for a message of an agent that does not run on the calling runner. */
export function senderUnknown(): DomainError {
  return valueUnusable(
    "agentMessage.senderExecutionId",
    "agentMessage.senderExecutionId names no agent run on this runner: give that of the run that speaks",
  );
}

/** Returns the error for a wake event for which nothing waits. */
export function interestUnknown(): DomainError {
  return valueUnusable(
    "wakeEvent.interestId",
    "wakeEvent.interestId names no interest that the agent run has registered: it may have fired already",
  );
}

/** Requires that an input that an agent reports as seen was delivered to it. @throws DomainError VALUE_UNUSABLE */
export function requireDelivered(receipt: Receipt | undefined, index: number): void {
  if (receipt === Receipt.DELIVERED) return;
  const field = `seenInputIds[${index}]`;
  throw valueUnusable(field, `${field} names an input that was not delivered`);
}
