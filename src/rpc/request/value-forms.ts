import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isJsonObject } from "../../domain/json-object.ts";

/**
 * Checks the durations, timestamps and integers of one message against the form of the Protobuf
 * JSON mapping.
 */
export interface ValueForms {
  /**
   * Returns whether a JSON text has such a value that the parser may mistake, or
   * may have one behind an escape; most texts need no further check.
   */
  mayBeIn(text: string): boolean;
  /**
   * Checks a message; values that the parser refuses anyway are left for it.
   *
   * @throws Error that names the field and the form, in the parser's own pattern
   */
  check(json: unknown): void;
}

/** What a value must be that the parser would take. */
interface ValueForm {
  /** Returns what was expected in place of the value; undefined when it is in order. */
  expected(value: unknown): string | undefined;
}

/** Decimal seconds, at most nine digits behind the point. */
const DURATION = /^-?\d+(?:\.\d{1,9})?s$/;

const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** A number as JSON writes it, in quotes; the parser itself refuses what is no whole one. */
const DECIMAL = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

const TIME_FORMS: Readonly<Record<string, ValueForm>> = {
  "google.protobuf.Duration": textForm(
    (text) => DURATION.test(text),
    "seconds with at most nine decimals and an s, such as 3600s",
  ),
  "google.protobuf.Timestamp": textForm(
    isTimestamp,
    "an existing instant of RFC 3339, such as 2026-01-31T15:04:05Z",
  ),
};

function textForm(isValid: (text: string) => boolean, form: string): ValueForm {
  return { expected: (value) => (typeof value === "string" && !isValid(value) ? form : undefined) };
}

const INTEGER = textForm((text) => DECIMAL.test(text), "decimal digits, such as 25");

const LONG_INTEGER: ValueForm = {
  expected: (value) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)
      ? "decimal digits in quotes: as a JSON number, one past 9007199254740991 loses some"
      : INTEGER.expected(value),
};

const INTEGER_FORMS: ReadonlyMap<ScalarType, ValueForm> = new Map([
  ...[ScalarType.INT32, ScalarType.SINT32, ScalarType.SFIXED32, ScalarType.UINT32, ScalarType.FIXED32].map(
    (type) => [type, INTEGER] as const,
  ),
  ...[ScalarType.INT64, ScalarType.SINT64, ScalarType.SFIXED64, ScalarType.UINT64, ScalarType.FIXED64].map(
    (type) => [type, LONG_INTEGER] as const,
  ),
]);

/**
 * Creates the check for requests of one form. It exists because the parser
 * accepts durations with anything behind their `s`, moves timestamps such as
 * 30 February to the next existing instant, reads `"0x10"` and `" 16 "` as the
 * integer 16, and gets numbers past 2^53 from JSON as others than were sent.
 *
 * @returns undefined when no such value can be in the message
 */
export function valueForms(message: DescMessage): ValueForms | undefined {
  const times = new Set<string>();
  const integers = new Set<string>();
  addNames(message, { times, integers }, new Set());
  // Letters have no other escape than this one.
  const mistakable = ["\\\\u"];
  if (times.size > 0) mistakable.push(`"(?:${[...times].join("|")})"`);
  // Most integers are short numbers, which every parser reads alike.
  if (integers.size > 0) mistakable.push(`"(?:${[...integers].join("|")})"\\s*:\\s*(?:["[{]|[-+.\\deE]{16})`);
  if (mistakable.length === 1) return undefined;
  const named = new RegExp(mistakable.join("|"));
  return {
    mayBeIn: (text) => named.test(text),
    check: (json) => checkMessage(message, json),
  };
}

interface NamesByKind {
  readonly times: Set<string>;
  readonly integers: Set<string>;
}

/** Adds both spellings of the fields that have a form, at any depth. */
function addNames(message: DescMessage, names: NamesByKind, seen: Set<DescMessage>): void {
  if (seen.has(message)) return;
  seen.add(message);
  for (const field of checkedFields(message)) {
    const { message: nested, name, jsonName } = field;
    if (!nested) names.integers.add(name).add(jsonName);
    else if (formOf(field)) names.times.add(name).add(jsonName);
    else addNames(nested, names, seen);
  }
}

const known = new Map<DescMessage, readonly DescField[]>();

/** Returns the fields that have a form, and those that may hold one that has. */
function checkedFields(message: DescMessage): readonly DescField[] {
  const found = known.get(message);
  if (found) return found;
  // While a message that contains itself is visited, each of its message fields may hold one.
  known.set(
    message,
    message.fields.filter((field) => field.message || formOf(field)),
  );
  const fields = message.fields.filter((field) => {
    if (formOf(field)) return true;
    return field.message !== undefined && checkedFields(field.message).length > 0;
  });
  known.set(message, fields);
  return fields;
}

/** Returns the form of a field's value, or of its elements. */
function formOf({ message, scalar }: DescField): ValueForm | undefined {
  if (message) return TIME_FORMS[message.typeName];
  return scalar === undefined ? undefined : INTEGER_FORMS.get(scalar);
}

function checkMessage(message: DescMessage, json: unknown): void {
  if (!isJsonObject(json)) return;
  for (const field of checkedFields(message)) {
    for (const name of new Set([field.jsonName, field.name])) {
      if (Object.hasOwn(json, name)) checkField(field, json[name]);
    }
  }
}

function checkField(field: DescField, value: unknown): void {
  if (field.fieldKind === "list" && Array.isArray(value)) {
    for (const element of value) checkValue(field, element);
  } else if (field.fieldKind === "map" && isJsonObject(value)) {
    for (const element of Object.values(value)) checkValue(field, element);
  } else checkValue(field, value);
}

function checkValue(field: DescField, value: unknown): void {
  const form = formOf(field);
  if (!form) {
    if (field.message) checkMessage(field.message, value);
    return;
  }
  const expected = form.expected(value);
  if (expected !== undefined) {
    throw new Error(
      `cannot decode field ${field.parent.typeName}.${field.name} from JSON: expected ${expected}`,
    );
  }
}

/**
 * Returns whether a text is a timestamp. A leap second is refused too: no instant
 * of the Protobuf timestamp is one.
 */
function isTimestamp(text: string): boolean {
  const parts = TIMESTAMP.exec(text)?.slice(1, 7).map(Number);
  if (!parts) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  // Day 0 of the next month is the last of this one; the year is set apart, since Date.UTC moves 0 to 99
  // to 1900.
  const lastDay = new Date(new Date(0).setUTCFullYear(year, month, 0)).getUTCDate();
  return (
    month >= 1 && month <= 12 && day >= 1 && day <= lastDay && hour <= 23 && minute <= 59 && second <= 59
  );
}
