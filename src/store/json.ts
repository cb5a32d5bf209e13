import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";

/**
 * The form of all JSON that is stored or sent: `[]`, 0, false and "" appear, unset messages and
 * unset optional fields do not.
 */
export const JSON_FORM = { alwaysEmitImplicit: true } as const;

/** Returns the object that {@link toBody} serializes. */
export function toJsonObject<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonObject {
  return toJson(schema, message, JSON_FORM) as JsonObject;
}

/** Returns the canonical text of a message. */
export function toBody<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  return toJsonString(schema, message, JSON_FORM);
}

/**
 * Parses a stored text, which {@link toBody} must have written. It does not look
 * for duplicate keys, which takes a third of the time of a small one.
 */
export function fromBody<D extends DescMessage>(schema: D, body: string): MessageShape<D> {
  return fromStoredJson(schema, JSON.parse(body));
}

/**
 * Reads a message from stored JSON. Fields that this release does not know are left out: a server of the next release
 * beside it writes them, empty until the feature level allows more (./feature-level.ts).
 */
export function fromStoredJson<D extends DescMessage>(schema: D, json: JsonValue): MessageShape<D> {
  return fromJson(schema, json, { ignoreUnknownFields: true });
}
