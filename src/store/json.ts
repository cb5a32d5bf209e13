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

/** Characters of the texts whose messages one {@link sharedFromBody} keeps. */
const MAX_SHARED_CHARACTERS = 4 * 1024 * 1024;

/**
 * Returns a function that parses as {@link fromBody} does and keeps the messages of the last texts, for texts that are
 * read again and again and seldom change. All who read a text get the same message: they must copy what they modify. Who
 * writes a text may give the message that it was made of, which saves the first reader from parsing it.
 */
export function sharedFromBody<D extends DescMessage>(
  schema: D,
): (body: string, made?: MessageShape<D>) => MessageShape<D> {
  const known = new Map<string, MessageShape<D>>();
  let characters = 0;
  return (body, made) => {
    const shared = known.get(body);
    if (shared) return shared;
    const message = made ?? fromBody(schema, body);
    known.set(body, message);
    characters += body.length;
    for (const oldest of known.keys()) {
      if (characters <= MAX_SHARED_CHARACTERS) break;
      known.delete(oldest);
      characters -= oldest.length;
    }
    return message;
  };
}

/**
 * Reads a message from stored JSON. Fields that this release does not know are left out: a server of the next release
 * alongside writes them, empty until the feature level allows more (./feature-level.ts).
 */
export function fromStoredJson<D extends DescMessage>(schema: D, json: JsonValue): MessageShape<D> {
  return fromJson(schema, json, { ignoreUnknownFields: true });
}
