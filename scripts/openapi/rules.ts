import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { type Duration, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  field as fieldRules,
  Ignore,
  message as messageRules,
  type Rule,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { addCel } from "./cel.ts";
import { ecmaPattern, visible } from "./pattern.ts";
import { constrain, type Schema } from "./schema.ts";

const UUID_OR_EMPTY = "^$|^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

/** Types of rules that the document knows, by what {@link addType} does with each. */
type Typed = FieldRules["type"];

/** Returns the rules of the contract for a field; undefined when it has none, or when they are not applied. */
function rulesOf(field: DescField): FieldRules | undefined {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  return rules?.ignore === Ignore.ALWAYS ? undefined : rules;
}

/** Returns whether the elements of a list are not checked with their request. */
export function leavesElements(field: DescField): boolean {
  const rules = rulesOf(field);
  return rules?.type.case === "repeated" && rules.type.value.items?.ignore === Ignore.ALWAYS;
}

/** Returns the rules of a message that are written in CEL, each as a sentence. */
export function messageNotes(message: DescMessage): string[] {
  return hasOption(message, messageRules) ? getOption(message, messageRules).cel.map(celNote) : [];
}

/**
 * Adds the rules of a field to its schema, as keywords where there are such.
 *
 * @returns a sentence for each rule that no keyword expresses, and whether a request must have the field
 */
export function addRules(schema: Schema, field: DescField): { notes: string[]; isRequired: boolean } {
  const rules = rulesOf(field);
  if (!rules) return { notes: [], isRequired: false };
  const notes: string[] = [];
  addType(schema, rules.type, notes);
  addCelRules(schema, rules.cel, notes);
  const tracksPresence = field.presence !== FeatureSet_FieldPresence.IMPLICIT;
  if (rules.ignore === Ignore.IF_ZERO_VALUE && !tracksPresence) allowZero(schema, field);
  if (!rules.required) return { notes, isRequired: !tracksPresence && breaksAtZero(schema, field) };
  if (!tracksPresence) excludeZero(schema, field);
  return { notes, isRequired: true };
}

function addCelRules(schema: Schema, rules: readonly Rule[], notes: string[]): void {
  for (const rule of rules) {
    addCel(schema, rule.expression);
    notes.push(celNote(rule));
  }
}

/** Returns a rule in CEL as a sentence. */
function celNote({ id, message, expression }: Rule): string {
  const code = visible(expression.replace(/\s+/g, " "));
  return `Rule \`${id}\`${message ? `, ${message}` : ""}: \`${code}\``;
}

/** Adds the rules of a type; what it does not know fails, so that no rule is left out unseen. */
function addType(schema: Schema, { case: type, value }: Typed, notes: string[]): void {
  switch (type) {
    case undefined:
      return;
    case "string": {
      constrain(schema, { minLength: Number(value.minLen), maxLength: lengthOf(value, "maxLen") });
      if (value.pattern) constrain(schema, { pattern: ecmaPattern(value.pattern) });
      if (value.in.length > 0) constrain(schema, { enum: [...value.in] });
      const { case: form } = value.wellKnown;
      if (form === "uuid" || form === "uri") constrain(schema, { format: form });
      else if (form) throw new Error(`the form ${form} of a text is not known`);
      return;
    }
    case "bytes": {
      const most = lengthOf(value, "maxLen");
      const least = Number(value.minLen);
      // Four characters for three bytes, with or without padding.
      if (least > 0) constrain(schema, { minLength: Math.ceil((least * 4) / 3) });
      if (most !== undefined) constrain(schema, { maxLength: Math.ceil(most / 3) * 4 });
      notes.push(`Bytes, before they are encoded: ${between(least || undefined, most)}.`);
      return;
    }
    case "int32":
      if (value.greaterThan.case === "gte") constrain(schema, { minimum: value.greaterThan.value });
      if (value.greaterThan.case === "gt") constrain(schema, { exclusiveMinimum: value.greaterThan.value });
      if (value.lessThan.case === "lte") constrain(schema, { maximum: value.lessThan.value });
      if (value.lessThan.case === "lt") constrain(schema, { exclusiveMaximum: value.lessThan.value });
      return;
    case "int64": {
      if (value.lessThan.case || value.greaterThan.case !== "gte" || value.greaterThan.value > 1n)
        throw new Error("a bound of an int64 that is no text of digits: add it to the notes");
      schema.pattern = value.greaterThan.value === 1n ? "^[1-9][0-9]*$" : "^(?:0|[1-9][0-9]*)$";
      return;
    }
    case "enum":
      // Unknown values are no names, so that definedOnly needs no keyword.
      schema.notIn = value.notIn;
      return;
    case "repeated":
      constrain(schema, { minItems: Number(value.minItems), maxItems: lengthOf(value, "maxItems") });
      if (value.unique) constrain(schema, { uniqueItems: true });
      addInner(schema.items as Schema, value.items, notes, "Each element");
      return;
    case "map":
      constrain(schema, {
        minProperties: Number(value.minPairs),
        maxProperties: lengthOf(value, "maxPairs"),
      });
      if (value.keys) schema.propertyNames ??= { type: "string" };
      addInner(schema.propertyNames as Schema, value.keys, notes, "Each key");
      addInner(schema.additionalProperties as Schema, value.values, notes, "Each value");
      return;
    case "duration": {
      const { greaterThan, lessThan } = value;
      if (greaterThan.case === "gt" || lessThan.case === "lt") throw new Error("an open bound of a duration");
      const bounds = between(secondsOf(greaterThan.value), secondsOf(lessThan.value));
      notes.push(`Seconds: ${bounds}.`);
      return;
    }
    default:
      throw new Error(`rules of the type ${type} have no keywords here`);
  }
}

function addInner(schema: Schema, rules: FieldRules | undefined, notes: string[], whose: string): void {
  if (!rules || rules.ignore === Ignore.ALWAYS) return;
  const inner: string[] = [];
  addType(schema, rules.type, inner);
  addCelRules(schema, rules.cel, inner);
  if (rules.ignore === Ignore.IF_ZERO_VALUE) throw new Error(`${whose} ignores its rules at times`);
  notes.push(...inner.map((note) => `${whose}: ${note}`));
}

/** Returns a limit; undefined where it is not set, since 0 is one. */
function lengthOf<N extends string>(value: { readonly [K in N]: bigint }, name: N): number | undefined {
  return value[name] === 0n && !Object.hasOwn(value, name) ? undefined : Number(value[name]);
}

function secondsOf(bound: Duration | bigint | number | undefined): number | undefined {
  return typeof bound === "object" ? Number(bound.seconds) + bound.nanos / 1e9 : undefined;
}

function between(least: number | undefined, most: number | undefined): string {
  const from = least === undefined ? "" : `at least ${least.toLocaleString("en")}`;
  const to = most === undefined ? "" : `at most ${most.toLocaleString("en")}`;
  return [from, to].filter((part) => part).join(", ");
}

/** Lets the empty value of a field pass rules that are not applied to it. */
function allowZero(schema: Schema, field: DescField): void {
  if (!breaksAtZero(schema, field)) return;
  if (schema.format === "uuid") {
    delete schema.format;
    schema.pattern = UUID_OR_EMPTY;
  } else
    throw new Error(
      `${field.parent.typeName}.${field.name}: its empty value passes what no keyword expresses`,
    );
}

/** Returns whether the empty value, which a missing field has, breaks the rules of the field. */
function breaksAtZero(schema: Schema, field: DescField): boolean {
  if (field.fieldKind === "list") return Number(schema.minItems ?? 0) > 0;
  if (field.fieldKind === "map") return Number(schema.minProperties ?? 0) > 0;
  if (field.fieldKind === "enum") return ((schema.notIn as number[] | undefined) ?? []).includes(0);
  if (field.fieldKind !== "scalar") return false;
  if (schema.type === "integer") return Number(schema.minimum ?? 0) > 0 || schema.exclusiveMinimum === 0;
  if (field.scalar === ScalarType.BYTES) return Number(schema.minLength ?? 0) > 0;
  if (field.scalar !== ScalarType.STRING) return schema.pattern === "^[1-9][0-9]*$";
  const { minLength = 0, format, pattern, enum: values } = schema;
  if (Number(minLength) > 0 || format !== undefined) return true;
  if (Array.isArray(values) && !values.includes("")) return true;
  return typeof pattern === "string" && !new RegExp(pattern, "u").test("");
}

/** Refuses the empty value of a field that does not track presence. */
function excludeZero(schema: Schema, field: DescField): void {
  if (field.fieldKind === "list") constrain(schema, { minItems: 1 });
  else if (field.fieldKind === "map") constrain(schema, { minProperties: 1 });
  else if (field.fieldKind === "enum") schema.notIn = [0, ...((schema.notIn as number[] | undefined) ?? [])];
  else if (field.fieldKind === "scalar") {
    if (schema.type === "boolean") schema.const = true;
    else if (schema.type === "integer") {
      if (schema.minimum === 0) schema.minimum = 1;
      else constrain(schema, { not: { const: 0 } });
    } else if (schema.type === "string" && schema.format === "int64") schema.pattern = "^[1-9][0-9]*$";
    else if (schema.format !== "uuid" && schema.format !== "uri") constrain(schema, { minLength: 1 });
  }
}
