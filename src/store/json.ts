import {
  type DescMessage,
  fromJsonString,
  type JsonObject,
  type MessageShape,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";

/**
 * The form of all JSON that is stored or sent: `[]`, 0, false and "" appear,
 * unset messages and unset optional fields do not.
 */
export const JSON_FORM = { alwaysEmitImplicit: true } as const;

/** What {@link toBody} writes, before it is text. */
export function toJsonObject<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonObject {
  return toJson(schema, message, JSON_FORM) as JsonObject;
}

/** The canonical text of a message. */
export function toBody<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  return toJsonString(schema, message, JSON_FORM);
}

/** The message of a stored text; it must be one that {@link toBody} wrote. */
export function fromBody<D extends DescMessage>(schema: D, body: string): MessageShape<D> {
  return fromJsonString(schema, body);
}
