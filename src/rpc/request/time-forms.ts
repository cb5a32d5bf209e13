import type { DescField, DescMessage } from "@bufbuild/protobuf";

type JsonObject = Record<string, unknown>;

/** Checks the durations and timestamps of one message against the form of the Protobuf JSON mapping. */
export interface TimeForms {
  /**
   * Returns whether a JSON text names such a field, or may do so behind an
   * escape; most texts need no further check.
   */
  mayBeIn(text: string): boolean;
  /**
   * Checks a message; values that are no text are left for the parser.
   *
   * @throws Error that names the field and the form, in the parser's own pattern
   */
  check(json: unknown): void;
}

/** Decimal seconds, at most nine digits behind the point. */
const DURATION = /^-?\d+(?:\.\d{1,9})?s$/;

const TIMESTAMP =
  /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const FORMS: Readonly<Record<string, { isValid: (text: string) => boolean; form: string }>> = {
  "google.protobuf.Duration": {
    isValid: (text) => DURATION.test(text),
    form: "expected seconds with at most nine decimals and an s, such as 3600s",
  },
  "google.protobuf.Timestamp": {
    isValid: isTimestamp,
    form: "expected an existing instant of RFC 3339, such as 2026-01-31T15:04:05Z",
  },
};

/**
 * Creates the check for requests of one form. It exists because the parser
 * accepts durations with anything behind their `s`, and moves timestamps such as
 * 30 February to the next existing instant.
 *
 * @returns undefined when no duration and no timestamp can be in the message
 */
export function timeForms(message: DescMessage): TimeForms | undefined {
  const names = new Set<string>();
  addNames(message, names, new Set());
  if (names.size === 0) return undefined;
  // Letters have no other escape than this one.
  const named = new RegExp(`\\\\u|"(?:${[...names].join("|")})"`);
  return {
    mayBeIn: (text) => named.test(text),
    check: (json) => checkMessage(message, json),
  };
}

/** Adds both spellings of the fields that are durations or timestamps, at any depth. */
function addNames(message: DescMessage, names: Set<string>, seen: Set<DescMessage>): void {
  if (seen.has(message)) return;
  seen.add(message);
  for (const { message: nested, name, jsonName } of timeFields(message)) {
    if (!nested) continue;
    if (FORMS[nested.typeName]) names.add(name).add(jsonName);
    else addNames(nested, names, seen);
  }
}

const known = new Map<DescMessage, readonly DescField[]>();

/** Returns the fields that are or may hold a duration or timestamp. */
function timeFields(message: DescMessage): readonly DescField[] {
  const found = known.get(message);
  if (found) return found;
  // While a message that contains itself is visited, each of its message fields may hold one.
  known.set(
    message,
    message.fields.filter((field) => field.message),
  );
  const fields = message.fields.filter(({ message: nested }) => {
    if (!nested) return false;
    return FORMS[nested.typeName] !== undefined || timeFields(nested).length > 0;
  });
  known.set(message, fields);
  return fields;
}

function checkMessage(message: DescMessage, json: unknown): void {
  if (!isObject(json)) return;
  for (const field of timeFields(message)) {
    for (const name of new Set([field.jsonName, field.name])) {
      if (Object.hasOwn(json, name)) checkField(field, json[name]);
    }
  }
}

function checkField(field: DescField, value: unknown): void {
  if (field.fieldKind === "list" && Array.isArray(value)) {
    for (const element of value) checkValue(field, element);
  } else if (field.fieldKind === "map" && isObject(value)) {
    for (const element of Object.values(value)) checkValue(field, element);
  } else checkValue(field, value);
}

function checkValue(field: DescField, value: unknown): void {
  const nested = field.message as DescMessage;
  const form = FORMS[nested.typeName];
  if (!form) checkMessage(nested, value);
  else if (typeof value === "string" && !form.isValid(value))
    throw new Error(`cannot decode field ${field.parent.typeName}.${field.name} from JSON: ${form.form}`);
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

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
