import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import {
  type DescField,
  type DescMessage,
  fromJson,
  type MessageShape,
  type JsonObject as ProtobufJson,
  ScalarType,
} from "@bufbuild/protobuf";
import { isJsonObject } from "../../domain/json-object.ts";
import { isNameOf, type Path } from "./folder.ts";

/** Receives a problem of a field. */
export type Report = (path: Path, message: string) => void;

const WELL_KNOWN: Readonly<Record<string, string>> = {
  "google.protobuf.Duration": "a duration in seconds, such as 3600s",
  "google.protobuf.Timestamp": "a time, such as 2026-11-26T12:00:00Z",
};

/** Maximum number of enum values that an error lists. */
const LISTED_VALUES = 12;

/**
 * Decodes a message from JSON. Reports problems with their path and then returns undefined. No report repeats a
 * value.
 */
export function decode<D extends DescMessage>(
  schema: D,
  json: JsonObject,
  report: Report,
): MessageShape<D> | undefined {
  let isValid = true;
  checkMessage(schema, json, [], (path, message) => {
    isValid = false;
    report(path, message);
  });
  if (!isValid) return undefined;
  try {
    return fromJson(schema, json as ProtobufJson);
  } catch {
    report([], `is no ${schema.name}`);
    return undefined;
  }
}

function checkMessage(schema: DescMessage, json: JsonValue, path: Path, report: Report): void {
  if (!isJsonObject(json)) {
    report(path, "takes an object");
    return;
  }
  const chosen = new Set<string>();
  for (const [key, value] of Object.entries(json)) {
    const field = schema.fields.find(({ jsonName, name }) => isNameOf(key, jsonName) || key === name);
    if (!field) {
      report([...path, key], `is no field of ${schema.name}`);
      continue;
    }
    if (value === null) continue;
    const { oneof } = field;
    if (oneof && chosen.has(oneof.name))
      report([...path, key], `excludes another field that is written: ${alternatives(oneof.fields)}`);
    if (oneof) chosen.add(oneof.name);
    checkField(schema, field, key, value, path, report);
  }
}

function checkField(
  schema: DescMessage,
  field: DescField,
  key: string,
  value: JsonValue,
  path: Path,
  report: Report,
): void {
  const here = [...path, key];
  const nested = field.fieldKind === "enum" || field.fieldKind === "scalar" ? undefined : field.message;
  const hasOwnForm = !nested || nested.typeName.startsWith("google.protobuf.");
  if (!hasOwnForm && field.fieldKind === "list" && Array.isArray(value)) {
    for (const [at, each] of value.entries()) checkMessage(nested, each, [...here, at], report);
  } else if (!hasOwnForm && field.fieldKind === "map" && isJsonObject(value)) {
    for (const [name, each] of Object.entries(value)) checkMessage(nested, each, [...here, name], report);
  } else if (!hasOwnForm && field.fieldKind === "message") {
    checkMessage(nested, value, here, report);
  } else if (!isReadable(schema, key, value)) report(here, `takes ${valuesOf(field)}`);
}

function isReadable(schema: DescMessage, key: string, value: JsonValue): boolean {
  try {
    fromJson(schema, { [key]: value } as ProtobufJson);
    return true;
  } catch {
    return false;
  }
}

function valuesOf(field: DescField): string {
  if (field.fieldKind === "map") return "an object of names and values";
  if (field.fieldKind === "list") {
    if (field.listKind === "message") return "a list of objects";
    return field.listKind === "enum"
      ? `a list of ${enumValues(field.enum)}`
      : `a list, each ${scalar(field.scalar)}`;
  }
  if (field.fieldKind === "enum") return enumValues(field.enum);
  if (field.fieldKind === "scalar") return scalar(field.scalar);
  return WELL_KNOWN[field.message.typeName] ?? "an object";
}

function enumValues({ values }: { readonly values: readonly { readonly name: string }[] }): string {
  const names = values.slice(1, 1 + LISTED_VALUES).map(({ name }) => name);
  return `one of ${names.join(", ")}${values.length > 1 + LISTED_VALUES ? " and others" : ""}`;
}

function scalar(type: ScalarType): string {
  if (type === ScalarType.STRING) return "a text";
  if (type === ScalarType.BOOL) return "true or false";
  return type === ScalarType.BYTES ? "bytes in base64" : "a number";
}

function alternatives(fields: readonly DescField[]): string {
  return `one of ${fields.map(({ jsonName }) => jsonName).join(", ")}`;
}
