import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { isJsonObject, type UncheckedObject } from "../domain/json-object.ts";

/**
 * Returns whether requests of this type have an `update_mask`. An empty list or map
 * in their JSON means that the field is to be cleared. The parsed message cannot
 * distinguish it from an absent field; only the JSON can.
 */
export function hasUpdateMask(request: DescMessage): boolean {
  return maskField(request) !== undefined;
}

/**
 * Returns the JSON of a request with its empty lists and maps added to its mask,
 * at any depth of nested messages. A top-level message field that is `{}`, although
 * the contract does not allow an empty message there, can only be meant to be
 * cleared: it is added to the mask too, and removed from the JSON. JSON that is not
 * such a request is returned unchanged, and the parser refuses it.
 */
export function addClearedFieldsToMask(request: DescMessage, json: unknown): unknown {
  const field = maskField(request);
  if (!field || !isJsonObject(json)) return json;
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

/** Returns the paths, in JSON names, of the empty lists and maps in `json`. */
function emptyFields(message: DescMessage, json: UncheckedObject, prefix: string): string[] {
  return message.fields.flatMap((field) => {
    const value = jsonValue(field, json);
    const path = prefix + field.jsonName;
    switch (field.fieldKind) {
      case "list":
        return Array.isArray(value) && value.length === 0 ? [path] : [];
      case "map":
        return isJsonObject(value) && Object.keys(value).length === 0 ? [path] : [];
      case "message":
        if (hasOwnForm(field.message) || !isJsonObject(value)) return [];
        return emptyFields(field.message, value, `${path}.`);
      default:
        return [];
    }
  });
}

/** Message fields that can be replaced but never cleared: an empty message there violates the rules. */
const NEVER_CLEARED: ReadonlySet<string> = new Set(["service.v1.UpdateWorkflowRequest.action"]);

/** Returns whether a field holds an empty message although none is allowed there, and can be cleared. */
function isRemoved(field: DescField, json: UncheckedObject): boolean {
  if (NEVER_CLEARED.has(`${field.parent.typeName}.${field.name}`)) return false;
  if (field.fieldKind !== "message" || hasOwnForm(field.message)) return false;
  const value = jsonValue(field, json);
  return isJsonObject(value) && Object.keys(value).length === 0 && !mayBeEmpty(field.message);
}

const validator = createValidator();
const emptiness = new Map<DescMessage, boolean>();

/** Returns whether a message without a single field satisfies the rules of the contract. */
function mayBeEmpty(message: DescMessage): boolean {
  const known = emptiness.get(message);
  if (known !== undefined) return known;
  const found = validator.validate(message, create(message)).kind !== "invalid";
  emptiness.set(message, found);
  return found;
}

/** Returns whether a message has a special JSON form, as well-known types do. */
function hasOwnForm({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}

/** Returns the request's value of a field, under its JSON or its proto name; inherited properties are ignored. */
function jsonValue(field: DescField, json: UncheckedObject): unknown {
  const name = Object.hasOwn(json, field.jsonName) ? field.jsonName : field.name;
  return Object.hasOwn(json, name) ? json[name] : undefined;
}
