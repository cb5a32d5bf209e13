import { lstat, readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import type { ContentBlock, PromptCapabilities, RequestError } from "@agentclientprotocol/sdk";
import type { AgentInput } from "#gen/service/v1/agent_pb.js";
import { type AgentReviewComment, AgentReviewComment_Side as Side } from "#gen/service/v1/agent_review_pb.js";
import { partsOf, type StoreImage } from "../agent-input-encoding.ts";
import { promptText } from "../agent-prompt.ts";

/** The kinds of content that an agent takes in a prompt. */
export interface PromptAbilities {
  readonly capabilities: PromptCapabilities;
  /** Names of the commands that it has announced, such as `compact`. */
  readonly commands: ReadonlySet<string>;
  /** Returns the real path of a file by its path in the workspace; rejects for one that leads out of it. */
  readonly resolve: (path: string) => Promise<string>;
}

/**
 * Returns an input as an agent's prompt: images as such where it takes them, everything else in words, and
 * after the words of a review links to its files.
 */
export async function promptOf(
  agentInput: AgentInput,
  { capabilities, commands, resolve }: PromptAbilities,
  storeImage: StoreImage,
): Promise<ContentBlock[]> {
  const { input } = agentInput;
  if (input.case === "controlInput" && input.value.control.case === "compact" && commands.has("compact"))
    return [{ type: "text", text: "/compact" }];
  if (input.case !== "userInput") return [{ type: "text", text: await promptText(agentInput, storeImage) }];
  const parts = await partsOf(input.value, storeImage);
  const comments = input.value.inputs.flatMap((part) =>
    part.input.case === "review" ? part.input.value.comments : [],
  );
  const blocks = await Promise.all(
    parts.map(async (part): Promise<ContentBlock> => {
      if ("text" in part) return { type: "text", text: part.text };
      const { mimeType, path } = part.image;
      if (!capabilities.image) return { type: "text", text: `Image: ${path}` };
      return { type: "image", mimeType, data: (await readFile(path)).toString("base64") };
    }),
  );
  return [...blocks, ...(await linksOf(comments, resolve))];
}

/** Returns links to the files that comments are on, one for each file that is there, with the lines on its new side. */
async function linksOf(
  comments: readonly AgentReviewComment[],
  resolve: PromptAbilities["resolve"],
): Promise<ContentBlock[]> {
  const linesByPath = new Map<string, string[]>();
  for (const { present, side } of comments) {
    if (!present || present.path === "") continue;
    const lines = linesByPath.get(present.path) ?? [];
    linesByPath.set(present.path, lines);
    const { firstLine, lastLine } = present;
    if (side !== Side.OLD) lines.push(firstLine === lastLine ? `${firstLine}` : `${firstLine}-${lastLine}`);
  }
  const links: ContentBlock[] = [];
  for (const [name, lines] of linesByPath) {
    const file = await resolve(name).catch(() => undefined);
    const isFile = file !== undefined && (await lstat(file).catch(() => undefined))?.isFile();
    if (!isFile) continue;
    const description = lines.length > 0 ? { description: `comments on lines ${lines.join(", ")}` } : {};
    links.push({ type: "resource_link", uri: pathToFileURL(file).href, name, ...description });
  }
  return links;
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
