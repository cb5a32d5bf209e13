import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";

type JsonObject = Record<string, unknown>;

/**
 * Whether requests of this form have an `update_mask`. A list or map of theirs
 * that is written out though it is empty is to be cleared; the message itself
 * cannot tell it from one that is absent, the JSON text can.
 */
export function hasUpdateMask(request: DescMessage): boolean {
  return maskField(request) !== undefined;
}

/**
 * The JSON of a request with the lists and maps that it has empty added to its
 * mask, at any depth of messages inside messages. A message of the request
 * itself that is written out as `{}`, where the contract allows no empty one,
 * can only be meant to be cleared: it is added too, and left out of the JSON.
 * What is no such request is left for the parser to refuse.
 */
export function addClearedFieldsToMask(request: DescMessage, json: unknown): unknown {
  const field = maskField(request);
  if (!field || !isObject(json)) return json;
  const key = Object.hasOwn(json, field.name) ? field.name : field.jsonName;
  const mask = json[key] ?? "";
  if (typeof mask !== "string") return json;
  const named = mask === "" ? [] : mask.split(",");
  const removed = request.fields.filter((each) => isRemoved(each, json));
  const cleared = [...removed.map(({ jsonName }) => jsonName), ...emptyFields(request, json, "")];
  const added = cleared.filter((path) => !named.includes(path));
  if (removed.length === 0 && added.length === 0) return json;
  const rest = Object.entries(json).filter(
    ([name]) => !removed.some((each) => each.jsonName === name || each.name === name),
  );
  return { ...Object.fromEntries(rest), [key]: [...named, ...added].join(",") };
}

function maskField(request: DescMessage) {
  return request.fields.find(
    ({ name, message }) => name === "update_mask" && message?.typeName === FieldMaskSchema.typeName,
  );
}

/** Paths, in JSON names, of the lists and maps that stand in `json` with nothing in them. */
function emptyFields(message: DescMessage, json: JsonObject, prefix: string): string[] {
  return message.fields.flatMap((field) => {
    const value = jsonValue(field, json);
    const path = prefix + field.jsonName;
    switch (field.fieldKind) {
      case "list":
        return Array.isArray(value) && value.length === 0 ? [path] : [];
      case "map":
        return isObject(value) && Object.keys(value).length === 0 ? [path] : [];
      case "message":
        if (hasOwnForm(field.message) || !isObject(value)) return [];
        return emptyFields(field.message, value, `${path}.`);
      default:
        return [];
    }
  });
}

/** Whether a field holds a message that is written out empty and cannot be. */
function isRemoved(field: DescField, json: JsonObject): boolean {
  if (field.fieldKind !== "message" || hasOwnForm(field.message)) return false;
  const value = jsonValue(field, json);
  return isObject(value) && Object.keys(value).length === 0 && !mayBeEmpty(field.message);
}

const validator = createValidator();
const emptiness = new Map<DescMessage, boolean>();

/** Whether a message without a single field keeps the rules of the contract. */
function mayBeEmpty(message: DescMessage): boolean {
  const known = emptiness.get(message);
  if (known !== undefined) return known;
  const found = validator.validate(message, create(message)).kind !== "invalid";
  emptiness.set(message, found);
  return found;
}

/** Well-known types have a JSON form of their own. */
function hasOwnForm({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}

/** What the request itself has for a field, in either spelling, and not what every object inherits. */
function jsonValue(field: DescField, json: JsonObject): unknown {
  const name = Object.hasOwn(json, field.jsonName) ? field.jsonName : field.name;
  return Object.hasOwn(json, name) ? json[name] : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
