import type { DescField, DescMessage } from "@bufbuild/protobuf";

type JsonObject = Record<string, unknown>;

/**
 * Returns a copy of a JSON message without the fields that the contract does not
 * know, at any depth. Values are left as they are: unknown names of enums stay,
 * and are refused by the parser behind it.
 */
export function skipUnknownFields(message: DescMessage, json: unknown): unknown {
  // Well-known types have a JSON form of their own, without unknown fields.
  if (!isObject(json) || message.typeName.startsWith("google.protobuf.")) return json;
  const known = knownNames(message);
  return Object.fromEntries(
    Object.entries(json).flatMap(([name, value]) => {
      const field = known.get(name);
      return field ? [[name, fieldValue(field, value)]] : [];
    }),
  );
}

function fieldValue(field: DescField, value: unknown): unknown {
  const nested = field.message;
  if (!nested) return value;
  if (field.fieldKind === "list") {
    return Array.isArray(value) ? value.map((element) => skipUnknownFields(nested, element)) : value;
  }
  if (field.fieldKind === "map") {
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, element]) => [key, skipUnknownFields(nested, element)]),
    );
  }
  return skipUnknownFields(nested, value);
}

const names = new Map<DescMessage, ReadonlyMap<string, DescField>>();

/**
 * Returns the fields by name. Both spellings of a field are JSON names:
 * lowerCamelCase and the one of the .proto file.
 */
function knownNames(message: DescMessage): ReadonlyMap<string, DescField> {
  let known = names.get(message);
  if (!known) {
    known = new Map(
      message.fields.flatMap((field) => [[field.jsonName, field] as const, [field.name, field] as const]),
    );
    names.set(message, known);
  }
  return known;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
