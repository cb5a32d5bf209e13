import { create, type DescMessage, type MessageInitShape, toJson, toJsonString } from "@bufbuild/protobuf";
import { JSON_OPTIONS } from "../rpc/request/json-options.ts";
import { type StoredTexts, storedTexts } from "../services/call/stored-text.ts";

/**
 * Returns the JSON of a response, in the form of all responses. This is the one
 * place that copies the text of stored resources instead of writing it from
 * messages; both are equal, as the text was written in this form when it was
 * stored.
 *
 * @param answer a message of the schema, or one that {@link storedTexts} knows
 */
export function responseJson(schema: DescMessage, answer: object): string {
  const stored = storedTexts(answer);
  if (!stored) return toJsonString(schema, answer as never, JSON_OPTIONS);
  const { field, rest } = stored;
  const parts = partsOf(schema);
  if (!parts.some(({ localName }) => localName === field)) throw new Error(`${schema} has no field ${field}`);
  const json =
    parts.length === 1 ? {} : (toJson(schema, create(schema, rest as Init), JSON_OPTIONS) as JsonObject);
  let text = "";
  for (const { jsonName, localName, opening } of parts) {
    const value = localName === field ? copied(stored) : JSON.stringify(json[jsonName]);
    if (value !== undefined) text += (text === "" ? "{" : ",") + opening + value;
  }
  return `${text}}`;
}

type Init = MessageInitShape<DescMessage>;
type JsonObject = Readonly<Record<string, unknown>>;

function copied({ texts }: StoredTexts): string {
  return typeof texts === "string" ? texts : `[${texts.join(",")}]`;
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
