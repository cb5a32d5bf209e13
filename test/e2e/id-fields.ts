import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isId, rulesOf } from "../../src/rpc/rules.ts";

type JsonObject = Record<string, unknown>;

/** Paths of all fields of a message that the contract makes ids, in JSON names. */
export function idFields(message: DescMessage): string[] {
  if (message.typeName.startsWith("google.protobuf.")) return [];
  // A change is the request of another operation, whose entry names its ids; its placeholder is the caller's own.
  if (message.typeName === "service.v1.ResourceChange") return [];
  return message.fields.flatMap((field) => {
    const path = pathOf(field);
    if (isIdField(field)) return [path];
    const nested = field.fieldKind === "enum" ? undefined : field.message;
    return nested ? idFields(nested).map((each) => `${path}.${each}`) : [];
  });
}

/** A copy of a JSON request with another id at one path of {@link idFields}; what it displaces in a oneof goes. */
export function withId(message: DescMessage, request: object, path: string, id: string): object {
  const [name = "", ...rest] = path.split(".");
  const field = message.fields.find((each) => pathOf(each) === name);
  if (!field) throw new Error(`${message.typeName} has no field ${name}`);
  const copy: JsonObject = { ...(request as JsonObject) };
  for (const sibling of field.oneof?.fields ?? []) if (sibling !== field) delete copy[sibling.jsonName];
  const value = copy[field.jsonName];
  const nested = field.fieldKind === "enum" ? undefined : field.message;
  const inner = (within: unknown) =>
    nested ? withId(nested, (within ?? {}) as object, rest.join("."), id) : id;
  if (field.fieldKind !== "list") return { ...copy, [field.jsonName]: inner(value) };
  const [first, ...others] = Array.isArray(value) ? value : [];
  return { ...copy, [field.jsonName]: [inner(first), ...others] };
}

function pathOf(field: DescField): string {
  return field.fieldKind === "list" ? `${field.jsonName}[]` : field.jsonName;
}

function isIdField(field: DescField): boolean {
  const rules = rulesOf(field);
  if (field.fieldKind !== "list") return isId(rules);
  return isId(rules?.type.case === "repeated" ? rules.type.value.items : undefined);
}
