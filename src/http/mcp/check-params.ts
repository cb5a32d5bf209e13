type Protocol = typeof import("@modelcontextprotocol/server");

/** The requests that the server answers, by their methods, with the names of their types in the protocol. */
const TYPES = {
  initialize: "InitializeRequest",
  ping: "PingRequest",
  "tools/call": "CallToolRequest",
  "tools/list": "ListToolsRequest",
} as const;

/** An error of JSON-RPC that names the request it answers. */
export interface InvalidParams {
  readonly id: string | number;
  readonly message: string;
}

/**
 * Returns why the parameters of a request are invalid: the protocol's library would call some of them an internal
 * error. Returns undefined for valid ones, and for messages that are no requests.
 */
export function invalidParams({ specTypeSchemas }: Protocol, asked: object): InvalidParams | undefined {
  const { jsonrpc, id, method, params } = asked as Readonly<Record<string, unknown>>;
  if (jsonrpc !== "2.0" || typeof method !== "string") return undefined;
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  const problem = problemOf(specTypeSchemas, method, params, asked);
  return problem === undefined ? undefined : { id: id as string | number, message: problem };
}

function problemOf(
  schemas: Protocol["specTypeSchemas"],
  method: string,
  params: unknown,
  asked: object,
): string | undefined {
  if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params)))
    return "params must be an object";
  if (!Object.hasOwn(TYPES, method)) return undefined;
  const checked = schemas[TYPES[method as keyof typeof TYPES]]["~standard"].validate(asked);
  if ("issues" in checked && checked.issues) return issueTexts(checked.issues);
  const hasCursor = params !== undefined && "cursor" in params && params.cursor !== undefined;
  if (method === "tools/list" && hasCursor) return "params.cursor must be left out: the list has one page";
  return undefined;
}

/** Maximum number of issues in one message: a request can have one in each of its fields. */
const MAX_ISSUES = 5;

/** Maximum length of a field's name in a message: a request may contain names of any length. */
const MAX_NAME = 200;

function issueTexts(issues: readonly Issue[]): string {
  const more = issues.length - MAX_ISSUES;
  const texts = issues.slice(0, MAX_ISSUES).map(issueText);
  return (more > 0 ? [...texts, `and ${more} more`] : texts).join("; ");
}

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  readonly expected?: unknown;
}

const WORDS: Readonly<Record<string, string>> = {
  string: "a string",
  object: "an object",
  record: "an object",
};

function issueText({ message, path = [], expected }: Issue): string {
  const name = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  const shown = name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME).toWellFormed()}...`;
  const words = WORDS[String(expected)];
  return words === undefined ? `${shown}: ${message}` : `${shown} must be ${words}`;
}
