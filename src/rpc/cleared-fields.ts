import type { DescMessage } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";

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
 * mask, at any depth of messages inside messages. What is no such request is
 * left for the parser to refuse.
 */
export function nameCleared(request: DescMessage, json: unknown): unknown {
  const field = maskField(request);
  if (!field || !isObject(json)) return json;
  const key = Object.hasOwn(json, field.name) ? field.name : field.jsonName;
  const mask = json[key] ?? "";
  if (typeof mask !== "string") return json;
  const named = mask === "" ? [] : mask.split(",");
  const cleared = emptyFields(request, json, "").filter((path) => !named.includes(path));
  return cleared.length === 0 ? json : { ...json, [key]: [...named, ...cleared].join(",") };
}

function maskField(request: DescMessage) {
  return request.fields.find(
    ({ name, message }) => name === "update_mask" && message?.typeName === FieldMaskSchema.typeName,
  );
}

/** Paths, in JSON names, of the lists and maps that stand in `json` with nothing in them. */
function emptyFields(message: DescMessage, json: JsonObject, prefix: string): string[] {
  return message.fields.flatMap((field) => {
    // Both spellings of a field are JSON names.
    const value = Object.hasOwn(json, field.jsonName) ? json[field.jsonName] : own(json, field.name);
    const path = prefix + field.jsonName;
    switch (field.fieldKind) {
      case "list":
        return Array.isArray(value) && value.length === 0 ? [path] : [];
      case "map":
        return isObject(value) && Object.keys(value).length === 0 ? [path] : [];
      case "message":
        // Well-known types have a JSON form of their own.
        if (field.message.typeName.startsWith("google.protobuf.") || !isObject(value)) return [];
        return emptyFields(field.message, value, `${path}.`);
      default:
        return [];
    }
  });
}

/** The value under a name that the request itself has, not one that every object inherits. */
function own(json: JsonObject, name: string): unknown {
  return Object.hasOwn(json, name) ? json[name] : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
