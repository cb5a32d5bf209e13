import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError, valueUnusable } from "../../error.ts";
import { isJsonObject } from "../../json-object.ts";
import { isReadableName } from "../../text/deceptive-text.ts";

/** A JSON object of a request, whose attributes are found without regard to letter case (RFC 7643, 2.1). */
export type Attributes = ReadonlyMap<string, unknown>;

/** Maximum number of operations of one PATCH. */
const MAX_OPERATIONS = 1_000;

/** A user or a group in the form of RFC 7643. */
export interface ScimResource {
  readonly meta: { readonly location: string; readonly [attribute: string]: unknown };
  readonly [attribute: string]: unknown;
}

const CORE_PREFIX = /^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):/;

/** Returns the attributes of a JSON object by their names in lower case, without the prefix of a core schema. */
export function attributesOf(value: unknown): Attributes {
  if (!isJsonObject(value))
    throw new DomainError(ErrorReason.BODY_MALFORMED, "the request must be a JSON object");
  return new Map(Object.entries(value).map(([name, each]) => [nameOf(name), each]));
}

/** Returns the text of an attribute; undefined where it is absent or null. @throws DomainError VALUE_UNUSABLE */
export function textOf(name: string, value: unknown, maxCharacters = 256): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && [...value].length <= maxCharacters && isReadableName(value)) return value;
  throw valueUnusable(
    name,
    `${name} must be a text of at most ${maxCharacters} characters without control characters, U+202D, U+202E and tag characters`,
  );
}

/** Returns a truth value, which some providers send as a text. @throws DomainError VALUE_UNUSABLE */
export function booleanOf(name: string, value: unknown): boolean {
  const word = typeof value === "string" ? value.toLowerCase() : value;
  if (word === true || word === "true") return true;
  if (word === false || word === "false") return false;
  throw valueUnusable(name, `${name} must be true or false`);
}

/** One change of a PATCH: an attribute by its path in lower case, and its value. */
export interface PatchChange {
  readonly op: "add" | "replace" | "remove";
  readonly path: string;
  readonly value: unknown;
}

/**
 * Returns the changes of a PATCH in their order. An operation without a path changes each attribute of its value.
 * @throws DomainError BODY_MALFORMED, VALUE_UNUSABLE
 */
export function patchChanges(body: unknown): PatchChange[] {
  const operations = attributesOf(body).get("operations");
  if (!Array.isArray(operations) || operations.length === 0 || operations.length > MAX_OPERATIONS)
    throw valueUnusable("Operations", `Operations must be a list of 1 to ${MAX_OPERATIONS} operations`);
  return operations.flatMap((operation) => {
    const attributes = attributesOf(operation);
    const op = String(attributes.get("op")).toLowerCase();
    if (op !== "add" && op !== "replace" && op !== "remove")
      throw valueUnusable("op", "op must be add, replace or remove");
    const path = textOf("path", attributes.get("path"), 1_024);
    const value = attributes.get("value");
    if (path !== undefined && path !== "") return [{ op, path: nameOf(path), value }];
    if (op === "remove") throw valueUnusable("path", "remove needs a path");
    return [...attributesOf(value)].map(([name, each]): PatchChange => ({ op, path: name, value: each }));
  });
}

/** Returns the error for a PATCH that removes what a resource must have (RFC 7644, 3.5.2.2). */
export function requiredAttribute(name: string): DomainError {
  const message = `${name} cannot be removed`;
  return new DomainError(ErrorReason.VALUE_UNUSABLE, message, { field: name, scimType: "mutability" });
}

/** The condition of a filter: an attribute in lower case, and the text that it equals. */
export interface ScimFilter {
  readonly attribute: string;
  readonly value: string;
}

const FILTER = /^\s*([a-z][\w.:$-]*(?:\[type eq "\w+"\]\.value)?)\s+eq\s+("(?:[^"\\]|\\.)*")\s*$/i;

/**
 * Returns the condition of a filter; undefined for none.
 * @param supported the attributes that may be compared, in lower case
 * @throws DomainError VALUE_UNUSABLE for any other filter
 */
export function scimFilter(filter: string | null, supported: readonly string[]): ScimFilter | undefined {
  if (filter === null || filter.trim() === "") return undefined;
  const [, name = "", text = ""] = FILTER.exec(filter) ?? [];
  const attribute = nameOf(name);
  if (!supported.includes(attribute))
    throw valueUnusable(
      "filter",
      `filter must be one of: ${supported.map((each) => `${each} eq "..."`).join(", ")}`,
    );
  return { attribute, value: parsedText(text) };
}

function parsedText(text: string): string {
  try {
    return JSON.parse(text);
  } catch {
    throw valueUnusable("filter", "the text of the filter must be a JSON string");
  }
}

/** Most resources of one page. */
export const MAX_PAGE_SIZE = 200;

const DEFAULT_PAGE_SIZE = 100;

/** Returns which resources a list is asked for: `startIndex` counts from 1 (RFC 7644, 3.4.2.4). */
export function scimPage(query: URLSearchParams): { readonly startIndex: number; readonly count: number } {
  return {
    startIndex: Math.max(1, numberOf(query, "startIndex", 1)),
    count: Math.min(MAX_PAGE_SIZE, Math.max(0, numberOf(query, "count", DEFAULT_PAGE_SIZE))),
  };
}

function numberOf(query: URLSearchParams, name: string, otherwise: number): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  // Larger numbers are as good as this one: no list is as long.
  if (/^[+-]?\d+$/.test(text)) return Math.min(Number(text), 2 ** 31);
  throw valueUnusable(name, `${name} must be a whole number`);
}

/** Returns the name of an attribute in lower case, without the prefix of a core schema. */
export function nameOf(name: string): string {
  return name.toLowerCase().replace(CORE_PREFIX, "");
}
