import {
  create,
  type DescMessage,
  type Message,
  type MessageInitShape,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";
import { storedTextOf } from "../../store/stored-message.ts";
import { JSON_OPTIONS } from "../request/json-options.ts";

/**
 * Returns the JSON of a response, in the form of all responses. This is the one
 * place that copies the text of stored resources instead of writing it from
 * messages; both are equal, as the text was written in this form when it was
 * stored.
 */
export function responseJson(schema: DescMessage, response: Message): string {
  const fields = response as unknown as Readonly<Record<string, unknown>>;
  const parts = partsOf(schema);
  const copies: Record<string, string> = {};
  for (const { localName } of parts) {
    const text = storedJson(fields[localName]);
    if (text !== undefined) copies[localName] = text;
  }
  const copied = Object.keys(copies);
  if (copied.length === 0) return toJsonString(schema, response, JSON_OPTIONS);
  const others = copied.length === parts.length ? {} : jsonWithout(schema, fields, copied);
  let json = "";
  for (const { jsonName, localName, opening } of parts) {
    const value = copies[localName] ?? JSON.stringify(others[jsonName]);
    if (value !== undefined) json += (json === "" ? "{" : ",") + opening + value;
  }
  return `${json}}`;
}

/** Returns the JSON of a field of stored messages only: of one, or of a list with some; undefined for any other. */
function storedJson(value: unknown): string | undefined {
  if (!Array.isArray(value)) return storedTextOf(value);
  const texts: string[] = [];
  for (const element of value) {
    const text = storedTextOf(element);
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return texts.length > 0 ? `[${texts.join(",")}]` : undefined;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Returns the JSON of the other fields of a message. */
function jsonWithout(
  schema: DescMessage,
  { $typeName: _, ...fields }: Readonly<Record<string, unknown>>,
  left: readonly string[],
): JsonObject {
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !left.includes(name)));
  return toJson(schema, create(schema, rest as MessageInitShape<DescMessage>), JSON_OPTIONS) as JsonObject;
}

interface Part {
  readonly localName: string;
  readonly jsonName: string;
  /** The name as JSON text, with its colon. */
  readonly opening: string;
}

const known = new Map<DescMessage, readonly Part[]>();

/** Returns the fields in the order in which toJson writes them. */
function partsOf(schema: DescMessage): readonly Part[] {
  let parts = known.get(schema);
  if (!parts) {
    const sorted = schema.fields.toSorted((one, other) => one.number - other.number);
    parts = sorted.map(({ localName, jsonName }) => ({
      localName,
      jsonName,
      opening: `${JSON.stringify(jsonName)}:`,
    }));
    known.set(schema, parts);
  }
  return parts;
}
