import { readFile } from "node:fs/promises";
import type { ContentBlock, PromptCapabilities, RequestError } from "@agentclientprotocol/sdk";
import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import { partsOf, type StoreImage } from "../agent-input-encoding.ts";
import { promptText } from "../agent-prompt.ts";

/** The kinds of content that an agent takes in a prompt. */
export interface PromptAbilities {
  readonly capabilities: PromptCapabilities;
  /** Names of the commands that it has told of, such as `compact`. */
  readonly commands: ReadonlySet<string>;
}

/** Returns an input as an agent's prompt: images as such where it takes them, everything else in words. */
export async function promptOf(
  agentInput: AgentInput,
  { capabilities, commands }: PromptAbilities,
  storeImage: StoreImage,
): Promise<ContentBlock[]> {
  const { input } = agentInput;
  if (input.case === "controlInput" && input.value.control.case === "compact" && commands.has("compact"))
    return [{ type: "text", text: "/compact" }];
  if (input.case !== "userInput") return [{ type: "text", text: await promptText(agentInput, storeImage) }];
  const parts = await partsOf(input.value, storeImage);
  return Promise.all(
    parts.map(async (part): Promise<ContentBlock> => {
      if ("text" in part) return { type: "text", text: part.text };
      const { mimeType, path } = part.image;
      if (!capabilities.image) return { type: "text", text: `Image: ${path}` };
      return { type: "image", mimeType, data: (await readFile(path)).toString("base64") };
    }),
  );
}

/** Messages to people about a turn that ended otherwise than well, by the reason for which it stopped. */
export const STOP_REASONS: Readonly<Record<string, string | undefined>> = {
  max_tokens: "the agent ended its turn: it has reached the most tokens of one",
  max_turn_requests: "the agent ended its turn: it has reached the most requests to its model of one",
  refusal: "the agent refuses to go on",
};

/** Returns whether it is the error with which the library rejects requests on a connection that is closed. */
export function agentIsGone(error: RequestError): boolean {
  return /connection closed/i.test(error.message);
}
