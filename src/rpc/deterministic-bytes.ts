import { clone, type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type ReflectMap, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/**
 * Serializes a message with the entries of its maps sorted by key, so that equal
 * messages have the same bytes, whatever their original encoding and order.
 */
export function deterministicBytes<D extends DescMessage>(schema: D, message: MessageShape<D>): Uint8Array {
  const copy = clone(schema, message);
  sortMaps(reflect(schema, copy));
  return toBinary(schema, copy);
}

function sortMaps(message: ReflectMessage): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.fieldKind === "map") {
      const map = message.get(field);
      if (field.mapKind === "message") for (const value of map.values()) sortMaps(value as ReflectMessage);
      sortEntries(map);
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const value of message.get(field)) sortMaps(value as ReflectMessage);
    } else if (field.fieldKind === "message") {
      sortMaps(message.get(field));
    }
  }
}

function sortEntries(map: ReflectMap): void {
  const entries = [...map].sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}
