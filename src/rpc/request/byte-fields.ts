import { type DescField, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/**
 * Replaces the bytes of a message, in place. They come in the same order for
 * messages that have the same form. Lists and maps of bytes are left alone.
 *
 * @param exchange returns the replacement for the bytes of a field
 */
export function exchangeBytes<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
  exchange: (bytes: Uint8Array, field: DescField) => Uint8Array,
): void {
  exchangeIn(reflect(schema, message), exchange);
}

function exchangeIn(
  message: ReflectMessage,
  exchange: (bytes: Uint8Array, field: DescField) => Uint8Array,
): void {
  for (const field of message.fields) {
    if (field.fieldKind === "scalar" && field.scalar === ScalarType.BYTES) {
      // Bytes outside a oneof are present even when they are empty, in one only when they are chosen.
      if (!field.oneof || message.isSet(field)) {
        message.set(field, exchange(message.get(field) as Uint8Array, field));
      }
    } else if (field.message && message.isSet(field)) {
      for (const nested of messagesOf(message, field)) exchangeIn(nested, exchange);
    }
  }
}

function messagesOf(message: ReflectMessage, field: DescField): Iterable<ReflectMessage> {
  if (field.fieldKind === "list") return message.get(field) as Iterable<ReflectMessage>;
  if (field.fieldKind === "map") return message.get(field).values() as Iterable<ReflectMessage>;
  return [message.get(field) as ReflectMessage];
}
