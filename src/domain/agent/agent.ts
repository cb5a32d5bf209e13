import { create } from "@bufbuild/protobuf";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { type Agent, AgentSchema } from "#gen/service/v1/agent_pb.js";
import { valueUnusable } from "../error.ts";

const MAX_NAME_CHARACTERS = 80;
const MAX_DESCRIPTION_CHARACTERS = 500;
const MAX_WORDS = 64;
const MAX_WORD_CHARACTERS = 4_096;

/** Characters that have a meaning only in a shell: a text that contains one expects a shell. */
const SHELL_CHARACTERS = /['"`\\$|&;<>*?(){}]/;

/** The operator's description of a new agent. */
export interface AgentTemplate {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly takesSettings: boolean;
}

/**
 * Returns a new agent.
 * @throws DomainError VALUE_UNUSABLE for a name that is empty, too long or has control characters,
 * or a description that is too long
 */
export function newAgent({ id, name, description, takesSettings }: AgentTemplate): Agent {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are rejected.
  if (name.trim() !== name || name === "" || /[\x00-\x1f\x7f-\x9f]/.test(name)) {
    throw valueUnusable(
      "name",
      "the name must not be empty, nor begin or end with spaces, nor have control characters",
    );
  }
  requireMaxLength("name", name, MAX_NAME_CHARACTERS);
  requireMaxLength("description", description, MAX_DESCRIPTION_CHARACTERS);
  return create(AgentSchema, { id, name, description, takesSettings });
}

/**
 * Parses the program and arguments of an agent from one text: a JSON list of words or, without
 * characters that only a shell understands, words separated by white space.
 * @throws DomainError VALUE_UNUSABLE
 */
export function commandWords(text: string): string[] {
  const words = text.trimStart().startsWith("[") ? listedWords(text) : plainWords(text);
  const [program] = words;
  if (!program) throw valueUnusable("command", "the command must name a program");
  if (words.length > MAX_WORDS)
    throw valueUnusable("command", `the command has more than ${MAX_WORDS} words`);
  for (const word of words) {
    requireMaxLength("command", word, MAX_WORD_CHARACTERS);
    if (word.includes("\0"))
      throw valueUnusable("command", "no word of the command may have a zero character");
  }
  return words;
}

function plainWords(text: string): string[] {
  if (SHELL_CHARACTERS.test(text)) {
    throw valueUnusable(
      "command",
      'the command is run without a shell: write words with quotes or special characters as a JSON list, such as ["sh", "-c", "agent < plan"]',
    );
  }
  return text.split(/\s+/).filter((word) => word !== "");
}

function listedWords(text: string): string[] {
  let words: unknown;
  try {
    words = JSON.parse(text);
  } catch {
    throw valueUnusable("command", "the command begins like a JSON list but is not one");
  }
  if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  throw valueUnusable("command", "the JSON list of a command has words only, each a string");
}

function requireMaxLength(field: string, text: string, max: number): void {
  if ([...text].length > max) throw valueUnusable(field, `the ${field} has more than ${max} characters`);
}

/** Returns whether agents of a form can ask before they use a tool. */
export function canAsk(form: AgentForm): boolean {
  return form === AgentForm.ACP || form === AgentForm.JSON_LINES;
}

/** The organization that an agent is registered for; null for all of them. */
export type AgentOwner = string | null;

/**
 * Requires that no organization would see two agents with one name.
 * @param registered the agents of all owners
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireUniqueName(
  name: string,
  owner: AgentOwner,
  registered: readonly { readonly agent: Pick<Agent, "name">; readonly organizationId: AgentOwner }[],
): void {
  const known = registered.filter(({ agent }) => agent.name === name);
  if (!known.some(({ organizationId }) => areVisibleTogether(organizationId, owner))) return;
  throw valueUnusable("name", `an agent of the name ${name} is registered already`);
}

function areVisibleTogether(one: AgentOwner, other: AgentOwner): boolean {
  return one === null || other === null || one === other;
}
