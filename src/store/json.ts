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
 * Parses a stored text, which {@link toBody} must have written. It does not check for duplicate keys, which takes a
 * third of the time of a small text.
 */
export function fromBody<D extends DescMessage>(schema: D, body: string): MessageShape<D> {
  return fromStoredJson(schema, JSON.parse(body));
}

/** Total length in characters of the texts whose messages one {@link sharedFromBody} caches. */
const MAX_SHARED_CHARACTERS = 4 * 1024 * 1024;

/**
 * Returns a function that parses like {@link fromBody} and caches the messages of recent texts, for texts that are
 * read often and seldom change. All readers of a text get the same message: they must copy it before they modify it. A
 * writer of a text may pass the message that it was made from, which saves the first reader from parsing it.
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
 * Reads a message from stored JSON and ignores fields that this release does not know: a server of the next release
 * writes them too, empty until the feature level allows more (./feature-level.ts).
 */
export function fromStoredJson<D extends DescMessage>(schema: D, json: JsonValue): MessageShape<D> {
  return fromJson(schema, json, { ignoreUnknownFields: true });
}
