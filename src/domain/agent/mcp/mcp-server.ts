import { valueUnusable } from "../../error.ts";
import { isVariableSecretName } from "../../policy/secret.ts";
import { commandWords } from "../agent.ts";

/** A server of the Model Context Protocol that an agent may use: a command, or a URL. */
export interface McpServer {
  readonly name: string;
  /** Program and arguments; empty for a server with a URL. */
  readonly command: readonly string[];
  /** Empty for a server with a command. */
  readonly url: string;
  /**
   * Variables of the command, or headers of the requests to the URL. `${secret:NAME}` in a value
   * refers to a secret of the run.
   */
  readonly values: Readonly<Record<string, string>>;
}

const MAX_SERVERS = 16;
const MAX_VALUES = 32;
const MAX_URL_CHARACTERS = 2_048;
const MAX_VALUE_CHARACTERS = 4_096;
const MAX_ALL_CHARACTERS = 65_536;

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** A token of HTTP. */
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const SECRET = /\$\{secret:([^}]*)\}/g;

/**
 * Parses the servers of an agent, each `NAME=COMMAND`, `NAME=URL`, or a JSON object with `name`,
 * `command` and perhaps `env`, or `url` and perhaps `headers`.
 * @throws DomainError VALUE_UNUSABLE
 */
export function mcpServers(texts: readonly string[]): McpServer[] {
  if (texts.length > MAX_SERVERS) throw unusable(`${MAX_SERVERS} are the most`);
  const servers = texts.map((text) => (text.trimStart().startsWith("{") ? described(text) : named(text)));
  const names = servers.map(({ name }) => name);
  if (new Set(names).size < names.length) throw unusable("two of them have the same name");
  if (JSON.stringify(servers).length > MAX_ALL_CHARACTERS)
    throw unusable(`together they have more than ${MAX_ALL_CHARACTERS} characters`);
  return servers;
}

/**
 * Requires that an agent can receive the list of its servers.
 * @param isAcp whether it speaks the Agent Client Protocol
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireMcpForm(servers: readonly McpServer[], isAcp: boolean): void {
  if (servers.length > 0 && !isAcp)
    throw unusable("only agents of the form acp receive one: configure it in the program itself");
}

/** Returns the names of the secrets in a text. */
export function secretNames(text: string): string[] {
  return [...text.matchAll(SECRET)].map(([, name = ""]) => name);
}

/** Returns a text with the values of its secrets inserted. */
export function withSecrets(text: string, secretOf: (name: string) => string): string {
  return text.replace(SECRET, (_, name: string) => secretOf(name));
}

function named(text: string): McpServer {
  const at = text.indexOf("=");
  if (at < 0) throw unusable("write NAME=COMMAND, NAME=URL, or a JSON object");
  const [name, target] = [text.slice(0, at), text.slice(at + 1)];
  return /^https?:/i.test(target)
    ? newServer({ name, url: target })
    : newServer({ name, command: commandWords(target) });
}

function described(text: string): McpServer {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unusable("it begins like a JSON object but is not one");
  }
  const { name, command, url, env, headers, ...others } = value as Record<string, unknown>;
  const [other] = Object.keys(others);
  if (other !== undefined) throw unusable(`it has no ${other}`);
  if ((command === undefined) === (url === undefined)) throw unusable("it needs either a command or a url");
  if ((url === undefined ? headers : env) !== undefined)
    throw unusable("env goes with a command, and headers with a url");
  const values = url === undefined ? env : headers;
  if (typeof name !== "string" || (url !== undefined && typeof url !== "string"))
    throw unusable("its name and url are texts");
  return newServer({
    name,
    ...(url === undefined ? { command: commandWords(JSON.stringify(command)) } : { url }),
    values: textsOf(values ?? {}),
  });
}

function textsOf(values: unknown): Record<string, string> {
  const isTexts =
    typeof values === "object" &&
    values !== null &&
    Object.values(values).every((value) => typeof value === "string");
  if (isTexts) return values as Record<string, string>;
  throw unusable("env and headers are objects with texts");
}

function newServer({
  name,
  command = [],
  url = "",
  values = {},
}: Pick<McpServer, "name"> & Partial<McpServer>): McpServer {
  if (!NAME.test(name)) throw unusable("its name has 1 to 64 letters, digits, _ and -");
  if (url !== "") requireUrl(url);
  for (const text of [...command, url]) {
    if (secretNames(text).length > 0)
      throw unusable("a secret is allowed only in env or headers: others can see commands and URLs");
  }
  if (Object.keys(values).length > MAX_VALUES) throw unusable(`it has more than ${MAX_VALUES} values`);
  for (const [key, value] of Object.entries(values)) requireValue(key, value, url === "" ? VARIABLE : HEADER);
  return { name, command, url, values };
}

function requireUrl(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || url.length > MAX_URL_CHARACTERS)
    throw unusable(`its url is http or https, and has at most ${MAX_URL_CHARACTERS} characters`);
  if (parsed.username !== "" || parsed.password !== "")
    throw unusable("its url has no password: name a secret in headers");
}

function requireValue(key: string, value: string, form: RegExp): void {
  if (!form.test(key)) throw unusable(`${JSON.stringify(key)} is no name of a variable or header`);
  if (value.length > MAX_VALUE_CHARACTERS)
    throw unusable(`a value has more than ${MAX_VALUE_CHARACTERS} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are rejected.
  if (/[\x00-\x1f\x7f]/.test(value)) throw unusable("a value has control characters");
  for (const name of secretNames(value)) {
    if (!isVariableSecretName(name))
      throw unusable(`${JSON.stringify(name)} is no name of a secret that is mounted as a variable`);
  }
}

function unusable(why: string) {
  return valueUnusable("mcpServer", `the MCP server cannot be used: ${why}`);
}
