import { resolve } from "node:path";
import type { CreateTerminalRequest, WriteTextFileRequest } from "@agentclientprotocol/sdk";
import { AgentOutputBlock_ToolCall_Kind as ToolKind } from "#gen/service/v1/agent_pb.js";
import type { Secrets } from "../../../domain/secrets.ts";
import { withEscapes } from "../../../domain/text/deceptive-text.ts";
import type { ToolCall } from "../agent-block.ts";
import { startOf } from "./acp-permissions.ts";

/** A call that an agent asks its client, the runner, to execute: a tool call without an id. */
export interface ClientCall {
  readonly tool: string;
  readonly call: Omit<ToolCall, "id">;
}

/** Maximum length of a file's text that is shown as a whole, in characters. */
const MAX_SHOWN_CHARACTERS = 32_768;

/**
 * Returns the call to write a file.
 * @param path where it leads to, as people read it
 */
export function writeFileCall({ content }: WriteTextFileRequest, path: string, secrets: Secrets): ClientCall {
  const isShown = content.length <= MAX_SHOWN_CHARACTERS;
  const input = isShown ? { content: secrets.maskText(content.toWellFormed()) } : startOf(content, secrets);
  return {
    tool: "fs/write_text_file",
    call: {
      title: `Write ${path}`,
      kind: ToolKind.EDIT,
      input: JSON.stringify(input),
      locations: [{ path }],
    },
  };
}

/**
 * Returns the call to read a file.
 * @param path where it leads to, as people read it
 */
export function readFileCall(path: string): ClientCall {
  const call = { title: `Read ${path}`, kind: ToolKind.READ, locations: [{ path }] };
  return { tool: "fs/read_text_file", call };
}

/**
 * Returns the call to run a command.
 * @param folder where it runs, as people read it
 */
export function runCommandCall(
  { command, args = [], env = [] }: CreateTerminalRequest,
  folder: string,
  secrets: Secrets,
): ClientCall {
  const masked = (text: string) => secrets.maskText(text.toWellFormed());
  const input = {
    command: masked(command),
    args: args.map(masked),
    ...(env.length > 0 && { env: env.map(({ name, value }) => ({ name, value: masked(value) })) }),
    folder,
  };
  const title = withEscapes(`Run ${[command, ...args].join(" ")}`);
  return {
    tool: "terminal/create",
    call: { title, kind: ToolKind.EXECUTE, input: JSON.stringify(input), locations: [] },
  };
}

/**
 * Returns whether the input of an allowed tool call names exactly this command, so that no approval
 * is needed again. The caller must compare the folder as well.
 *
 * @param input as the agent reported it: JSON with `command`, perhaps `args` and `cwd`
 */
export function namesCommand(
  input: string,
  { command, args = [], env = [] }: CreateTerminalRequest,
): boolean {
  const said = parseObject(input);
  if (!said || env.length > 0) return false;
  const words = [command, ...args];
  const isEqual = (list: unknown[]) => JSON.stringify(list) === JSON.stringify(words);
  if (Array.isArray(said.command)) return isEqual(said.command);
  if (typeof said.command !== "string") return false;
  if (Array.isArray(said.args) && said.args.length > 0) return isEqual([said.command, ...said.args]);
  const [shell = "", option = "", line, ...more] = words;
  const isShell = /^(\/bin\/)?(ba)?sh$/.test(shell) && /^-l?c$/.test(option) && more.length === 0;
  return isEqual([said.command]) || (isShell && line === said.command);
}

/**
 * Returns the absolute path of the folder in which the command of a tool call runs.
 * @param sessionFolder the default folder, and the base of relative paths
 */
export function commandFolder(input: string, sessionFolder: string): string {
  const { cwd } = parseObject(input) ?? {};
  return typeof cwd === "string" ? resolve(sessionFolder, cwd) : sessionFolder;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
