import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { valueUnusable } from "../domain/error.ts";
import { rulesOf } from "./rules.ts";

/** The maximum duration of the protobuf type, some 10,000 years. */
const MAX_SECONDS = 315_576_000_000n;
const MAX_NANOS = 999_999_999;

const known = new Map<DescMessage, readonly DescField[]>();

/**
 * Requires that the durations of a message are valid, at any depth. The binary form can hold nanos
 * of a second or more, or with the opposite sign of the seconds; JSON, and therefore the store, cannot.
 * Fields whose rules are checked elsewhere, element by element, are skipped.
 *
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireDurations(schema: DescMessage, message: Message, path = ""): void {
  for (const field of durationFields(schema)) {
    const value = presentValue(field, message);
    const name = path === "" ? field.jsonName : `${path}.${field.jsonName}`;
    if (value === undefined) continue;
    if (field.fieldKind === "list") {
      for (const [index, each] of (value as Message[]).entries()) requireIn(field, each, `${name}[${index}]`);
    } else if (field.fieldKind === "map") {
      for (const [key, each] of Object.entries(value as Record<string, Message>)) {
        requireIn(field, each, `${name}[${JSON.stringify(key)}]`);
      }
    } else requireIn(field, value as Message, name);
  }
}

function requireIn(field: DescField, value: Message, path: string): void {
  const schema = field.message as DescMessage;
  if (schema.typeName !== DurationSchema.typeName) requireDurations(schema, value, path);
  else if (!isDuration(value as Duration)) {
    throw valueUnusable(
      path,
      `${path} is no duration: its nanos must be fewer than a second's and have the sign of its seconds`,
    );
  }
}

function isDuration({ seconds, nanos }: Duration): boolean {
  if (seconds > MAX_SECONDS || seconds < -MAX_SECONDS || Math.abs(nanos) > MAX_NANOS) return false;
  return seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0;
}

/** Returns the fields that are a duration or may contain one. */
function durationFields(schema: DescMessage): readonly DescField[] {
  const found = known.get(schema);
  if (found) return found;
  // While a recursive message is visited, each of its message fields is assumed to contain one.
  known.set(
    schema,
    schema.fields.filter((field) => field.message),
  );
  const fields = schema.fields.filter((field) => {
    if (!field.message || isCheckedElsewhere(field)) return false;
    return field.message.typeName === DurationSchema.typeName || durationFields(field.message).length > 0;
  });
  known.set(schema, fields);
  return fields;
}

function isCheckedElsewhere(field: DescField): boolean {
  const rules = rulesOf(field);
  return rules?.type.case === "repeated" && rules.type.value.items?.ignore === Ignore.ALWAYS;
}

function presentValue({ oneof, localName }: DescField, message: Message): unknown {
  const values = message as unknown as Record<string, unknown>;
  if (!oneof) return values[localName];
  const chosen = values[oneof.localName] as { case?: string; value?: unknown };
  return chosen.case === localName ? chosen.value : undefined;
}
