import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type UserInputBlock as Block,
  UserInputBlockSchema as BlockSchema,
  type UserInputBlock_Input as Part,
  UserInputBlock_InputSchema as PartSchema,
} from "#gen/service/v1/agent_pb.js";
import { requireNoDeceptiveText } from "../deceptive-text.ts";
import { valueUnusable } from "../error.ts";
import { isOfType } from "./image-type.ts";

/** What the server knows of a message beside what it says. */
export interface MessageFacts {
  /** Its id, where the sender chose none. */
  readonly id: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  /** Whether what integrations and runners note about a message counts; a person's notes do not. */
  readonly keepsNotes: boolean;
}

/**
 * A message as it is kept: in the newer form, without what its sender cannot set.
 *
 * @throws DomainError TEXT_DECEPTIVE; VALUE_UNUSABLE for an image that is not of its type
 */
export function acceptedMessage(sent: Block, { id, now, keepsNotes }: MessageFacts): Block {
  const parts = partsOf(sent);
  for (const { path, part } of parts) requireValidPart(part, path);
  const { metadata } = sent;
  return create(BlockSchema, {
    id: sent.id || id,
    inputs: parts.map(({ part }) => (keepsNotes ? part : withoutReference(part))),
    createdAt: timestampFromMs(now),
    ...(keepsNotes && metadata && { metadata }),
  });
}

/** The parts of a message with their JSON paths, whichever form it has. */
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
  if (isOfType(data, mimeType)) return;
  throw valueUnusable(`${path}.data`, `${path}.data does not begin as a file of the type ${mimeType} does`);
}

function withoutReference(part: Part): Part {
  const { input } = part;
  if (input.case !== "image" || input.value.dataRef === "") return part;
  return create(PartSchema, { input: { case: "image", value: { ...input.value, dataRef: "" } } });
}
