/** Bounds of StartWorkflowRequest.parameters, whose values a webhook may post instead. */
const MAX_PARAMETERS = 10;
const MAX_KEY_CHARACTERS = 128;
const MAX_VALUE_CHARACTERS = 8_192;
const KEY_FORM = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * What a body asks of a workflow. With `parameters` (maybe none) it runs the
 * manual trigger's context; `absent`, it asks for nothing; `problem` says what
 * to mend, safe to show.
 */
export type WebhookParameters =
  | { readonly parameters: Readonly<Record<string, string>> }
  | { readonly problem: string }
  | { readonly absent: true };

/**
 * Reads `{"parameters": {"key": "value"}}`. Members beside `parameters` are
 * the sender's own; an empty body, and any JSON without `parameters`, is
 * `absent`.
 */
export function readWebhookParameters(body: Uint8Array): WebhookParameters {
  if (body.length === 0) return { absent: true };
  const document = readJson(body);
  if ("problem" in document) return document;
  const { value } = document;
  if (!isJsonObject(value) || !Object.hasOwn(value, "parameters")) return { absent: true };
  const { parameters } = value;
  if (!isJsonObject(parameters)) return { problem: "parameters must be a JSON object of texts" };
  const pairs = Object.entries(parameters);
  if (pairs.length > MAX_PARAMETERS) {
    return { problem: `give at most ${MAX_PARAMETERS} parameters, not ${pairs.length}` };
  }
  const texts: [key: string, value: string][] = [];
  for (const [key, text] of pairs) {
    if (key.length > MAX_KEY_CHARACTERS || !KEY_FORM.test(key)) {
      return {
        problem: `a key of parameters must match ${KEY_FORM.source} and have at most ${MAX_KEY_CHARACTERS} characters`,
      };
    }
    const problem = valueProblem(text);
    if (problem !== undefined) return { problem: `parameters.${key} ${problem}` };
    texts.push([key, text as string]);
  }
  // Entries, because assigning to the key __proto__ would lose it.
  return { parameters: Object.fromEntries(texts) };
}

function valueProblem(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a text: put it in quotes";
  if (value.includes("\0")) return "must not contain the NUL character";
  if (!value.isWellFormed()) return "must be well-formed text: it has half of a surrogate pair";
  // Characters are code points, as in the rules of the contract.
  if (value.length > MAX_VALUE_CHARACTERS && [...value].length > MAX_VALUE_CHARACTERS) {
    return `must have at most ${MAX_VALUE_CHARACTERS} characters`;
  }
  return undefined;
}

/** The value of a JSON text in UTF-8, or a problem that says what to mend. */
export function readJson(body: Uint8Array): { readonly value: unknown } | { readonly problem: string } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return { problem: "the body is not UTF-8" };
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: "the body is not JSON: send it with the content type application/json" };
  }
}

/** Whether a value of JSON is an object, and no array. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
