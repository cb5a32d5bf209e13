import type { WorkflowParameter } from "#gen/service/v1/workflow_pb.js";
import { valueUnusable } from "../../error.ts";
import { isJsonObject } from "../../json-object.ts";
import type { ParsedDelivery } from "./parsed-delivery.ts";
import { valueProblem } from "./webhook-body.ts";

type ParsedManualDelivery = Extract<ParsedDelivery, { kind: "manual" }>;

/**
 * The part of a delivery's body that is stored for a redelivery: its JSON, or the texts of the
 * fields that parameters were taken from, by their paths, with null for a field that the body does
 * not have.
 */
export type StoredBody =
  | { readonly body: string }
  | { readonly fields: Readonly<Record<string, string | null>> };

/**
 * Maximum length of the JSON of a body, in characters, that is stored whole: twice that of a host's
 * usual event.
 */
const BODY_MAX_CHARACTERS = 65_536;

/**
 * Returns the part of a body to store, so that a redelivery runs with the values of the delivery:
 * all of it up to 65,536 characters of JSON, and of a longer one the fields that the workflow
 * declares, as far as a parameter accepts their texts.
 */
export function storedBody(
  declared: readonly WorkflowParameter[],
  { body, fields }: ParsedManualDelivery,
): StoredBody {
  if (fields) return { fields };
  const json = JSON.stringify(body ?? null);
  if (json.length <= BODY_MAX_CHARACTERS) return { body: json };
  const texts = declared
    .filter(({ payloadField }) => payloadField !== "")
    .map(({ payloadField }) => [payloadField, textAt(body, payloadField) ?? null] as const);
  return { fields: Object.fromEntries(texts.filter(([, text]) => text === null || !valueProblem(text))) };
}

/**
 * Returns the parameters of a start by a webhook: those that the delivery gives, and those that the
 * workflow takes from fields of its body.
 * @throws DomainError VALUE_UNUSABLE for a text that no parameter accepts, and for a field of a
 * body that was not stored
 */
export function startParametersOf(
  declared: readonly WorkflowParameter[],
  { parameters, body, fields }: ParsedManualDelivery,
): Record<string, string> {
  const values = new Map<string, string>();
  for (const { key, payloadField } of declared) {
    if (payloadField === "" || Object.hasOwn(parameters, key)) continue;
    const text = fields ? storedText(fields, payloadField, key) : textAt(body, payloadField);
    if (text === undefined) continue;
    const problem = valueProblem(text);
    if (problem !== undefined) {
      throw valueUnusable(`parameters.${key}`, `${payloadField} of the body, which gives ${key}, ${problem}`);
    }
    values.set(key, text);
  }
  return Object.fromEntries([...values, ...Object.entries(parameters)]);
}

function storedText(
  fields: Readonly<Record<string, string | null>>,
  path: string,
  key: string,
): string | undefined {
  const text = Object.hasOwn(fields, path) ? fields[path] : undefined;
  if (text === undefined) {
    throw valueUnusable(
      `parameters.${key}`,
      `the ledger kept too little of the delivery's body to take ${path} from it, which gives ${key}: have its sender deliver it again`,
    );
  }
  return text ?? undefined;
}

/** Returns texts as they are, numbers and booleans as JSON writes them; all else is not a value. */
function textAt(body: unknown, path: string): string | undefined {
  let value = body;
  for (const name of path.split(".")) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}
