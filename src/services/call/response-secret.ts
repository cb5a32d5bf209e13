import { clone, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";

/** Names of the fields in which answers carry a secret, this once and never again. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  "token",
  "exchange_token",
  "refresh_token",
  "environment_token",
  "secret",
]);

/** A copy of an answer that may be kept, and whether anything had to be left out of it. */
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
    if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING && SECRET_FIELDS.has(field.name)) {
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
