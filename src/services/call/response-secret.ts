import { clone, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/**
 * Returns a copy of an answer that may be stored, and whether anything was left out of it: the fields
 * that the contract marks with `debug_redact`, which carry a secret this once and never again.
 */
export function withoutSecrets<D extends DescMessage>(
  schema: D,
  answer: MessageShape<D>,
): { answer: MessageShape<D>; omitted: boolean } {
  const copy = clone(schema, answer);
  const omitted = clearSecrets(reflect(schema, copy));
  return { answer: copy, omitted };
}

function clearSecrets(message: ReflectMessage): boolean {
  let omitted = false;
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.proto.options?.debugRedact) {
      message.clear(field);
      omitted = true;
    } else if (field.fieldKind === "message") {
      omitted = clearSecrets(message.get(field)) || omitted;
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      for (const value of message.get(field)) omitted = clearSecrets(value as ReflectMessage) || omitted;
    } else if (field.fieldKind === "map" && field.mapKind === "message") {
      for (const value of message.get(field).values())
        omitted = clearSecrets(value as ReflectMessage) || omitted;
    }
  }
  return omitted;
}
