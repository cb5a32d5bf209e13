import { isJsonObject } from "../../json-object.ts";

/** Limits of StartWorkflowRequest.parameters, which also apply to values that a webhook posts. */
const MAX_PARAMETERS = 10;
const MAX_KEY_CHARACTERS = 128;
const MAX_VALUE_CHARACTERS = 8_192;
/** Maximum nesting of a body, well above what senders use. Functions that read a value are recursive. */
const MAX_LEVELS = 100;
const KEY_FORM = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * The parameters of a body: `parameters` (possibly none) and its `value`, absent for an empty body.
 * `malformed` says why it is not JSON, `problem` what is wrong with its parameters; both texts are
 * safe to show.
 */
export type ParsedWebhookBody =
  | { readonly parameters: Readonly<Record<string, string>>; readonly value?: unknown }
  | { readonly problem: string }
  | { readonly malformed: string };

/** Numbers in JSON that JavaScript may not represent exactly: with more than 15 digits, or with an exponent. */
const LARGE_NUMBER = /[:[,\s]-?\d+(?:\d{15}|(?:\.\d+)?[eE])/;

/**
 * Parses `{"parameters": {"key": "value"}}`. Other members are the sender's own; an empty body, and
 * any JSON without `parameters`, has no parameters. In `value`, integers that JavaScript cannot
 * represent, such as ids of 64 bits, are the texts that were sent.
 */
export function parseWebhookBody(body: Uint8Array): ParsedWebhookBody {
  if (body.length === 0) return { parameters: {} };
  const document = parseJsonBody(body);
  if ("malformed" in document) return document;
  const value = LARGE_NUMBER.test(document.text) ? parseExactly(document.text) : document.value;
  if (!isJsonObject(document.value) || !Object.hasOwn(document.value, "parameters")) {
    return { parameters: {}, value };
  }
  const { parameters } = document.value;
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
  // Built from entries, because an assignment to the key __proto__ would be lost.
  return { parameters: Object.fromEntries(texts), value };
}

/** Returns why a value cannot be used for a parameter; undefined if it can. */
export function valueProblem(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a text: put it in quotes";
  if (value.includes("\0")) return "must not contain the NUL character";
  if (!value.isWellFormed()) return "must be well-formed text: it has half of a surrogate pair";
  // Characters are code points, as in the rules of the contract.
  if (value.length > MAX_VALUE_CHARACTERS && [...value].length > MAX_VALUE_CHARACTERS) {
    return `must have at most ${MAX_VALUE_CHARACTERS} characters`;
  }
  return undefined;
}

/** Returns the value of a JSON text in UTF-8, or the reason why the body is not one. */
export function parseJsonBody(
  body: Uint8Array,
): { readonly value: unknown; readonly text: string } | { readonly malformed: string } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return { malformed: "the body is not UTF-8" };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { malformed: "the body is not JSON: send JSON, or no body at all" };
  }
  if (isDeeper(value, MAX_LEVELS)) return { malformed: `the body nests deeper than ${MAX_LEVELS} levels` };
  return { value, text };
}

/** Parses JSON. Integers that JavaScript cannot represent exactly, and numbers beyond its range, become texts. */
function parseExactly(text: string): unknown {
  const keepDigits = (_: string, value: unknown, { source }: { readonly source?: string }) =>
    typeof value === "number" && !isExact(value) ? source : value;
  // TypeScript does not know the third parameter yet (ECMAScript 2026, JSON.parse source text access).
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
}

function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

/**
 * Returns whether a value has more levels of objects and lists; proceeds level by level, so that no
 * depth overflows the stack.
 */
function isDeeper(value: unknown, levels: number): boolean {
  let level = [value].filter(isNesting);
  for (let depth = 0; depth < levels && level.length > 0; depth++) {
    level = level.flatMap((each) => Object.values(each).filter(isNesting));
  }
  return level.length > 0;
}

function isNesting(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
