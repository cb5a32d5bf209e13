import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { oneof as oneofRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { addRules, leavesElements, messageNotes } from "./rules.ts";
import type { Schema } from "./schema.ts";
import { described, textOf } from "./texts.ts";

/** What a message is part of: a request, to which the rules apply, or an answer, in which more is always there. */
export type Side = "request" | "answer";

/** Suffix of the form in requests of a message that answers have too. */
const REQUEST_FORM = "_InRequest";

/** Matches no value; tools for clients read no `false` in its place. */
const NOTHING = { not: {} };

const NOT_FINITE = ["NaN", "Infinity", "-Infinity"];
const DECIMAL = { anyOf: [{ type: "number" }, { type: "string", enum: NOT_FINITE }] };

/** Each type of a value in JSON; integers of 64 bits are texts there. */
const SCALARS: Readonly<Record<ScalarType, Schema>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.DOUBLE]: DECIMAL,
  [ScalarType.FLOAT]: DECIMAL,
  [ScalarType.INT32]: { type: "integer", format: "int32" },
  [ScalarType.SINT32]: { type: "integer", format: "int32" },
  [ScalarType.SFIXED32]: { type: "integer", format: "int32" },
  [ScalarType.UINT32]: { type: "integer", minimum: 0, maximum: 4_294_967_295 },
  [ScalarType.FIXED32]: { type: "integer", minimum: 0, maximum: 4_294_967_295 },
  [ScalarType.INT64]: { type: "string", format: "int64", pattern: "^-?[0-9]+$" },
  [ScalarType.SINT64]: { type: "string", format: "int64", pattern: "^-?[0-9]+$" },
  [ScalarType.SFIXED64]: { type: "string", format: "int64", pattern: "^-?[0-9]+$" },
  [ScalarType.UINT64]: { type: "string", format: "uint64", pattern: "^[0-9]+$" },
  [ScalarType.FIXED64]: { type: "string", format: "uint64", pattern: "^[0-9]+$" },
};

/** Messages that have a form of their own in JSON. */
const WELL_KNOWN: Readonly<Record<string, Schema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", pattern: "^-?[0-9]+(?:\\.[0-9]{1,9})?s$" },
  "google.protobuf.FieldMask": { type: "string" },
  "google.protobuf.Struct": { type: "object" },
  "google.protobuf.Value": {},
  "google.protobuf.Empty": { type: "object" },
};

/** Collects the schemas of messages and enums by name. */
export class Messages {
  /** Schemas by the names of components. */
  readonly schemas = new Map<string, Schema>();
  readonly #inAnswers: ReadonlySet<string>;

  /** @param answers the messages that answers consist of; all within them are in answers too */
  constructor(answers: readonly DescMessage[]) {
    this.#inAnswers = reachable(answers);
  }

  /** Returns the reference to a message's schema, which it adds when it is not there. */
  reference(message: DescMessage, side: Side): Schema {
    const { typeName } = message;
    const name =
      side === "request" && this.#inAnswers.has(typeName) ? `${typeName}${REQUEST_FORM}` : typeName;
    if (!this.schemas.has(name)) {
      const schema: Schema = {};
      this.schemas.set(name, schema);
      Object.assign(schema, this.#message(message, side));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  #message(message: DescMessage, side: Side): Schema {
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const field of message.fields) {
      const { schema, isRequired } = this.#field(field, side);
      properties[field.jsonName] = schema;
      if (isRequired) required.push(field.jsonName);
    }
    const isRequest = side === "request";
    return {
      type: "object",
      ...descriptionOf(textOf(message), ...oneofNotes(message), ...(isRequest ? messageNotes(message) : [])),
      ...(message.fields.length > 0 && { properties }),
      ...(required.length > 0 && { required }),
      ...(isRequest && { additionalProperties: false, ...oneofKeywords(message) }),
      ...(message.deprecated && { deprecated: true }),
    };
  }

  #field(field: DescField, side: Side): { schema: Schema; isRequired: boolean } {
    const schema = this.#value(field, side);
    const isRequest = side === "request";
    const { notes, isRequired } = isRequest
      ? addRules(schema, field)
      : { notes: [], isRequired: isAlwaysSent(field) };
    leaveOut(schema, field.enum);
    if (isHolder(schema.items)) leaveOut(schema.items, field.enum);
    if (isHolder(schema.additionalProperties)) leaveOut(schema.additionalProperties, field.enum);
    Object.assign(schema, descriptionOf(textOf(field), ...notes), field.deprecated && { deprecated: true });
    return { schema, isRequired };
  }

  #value(field: DescField, side: Side): Schema {
    switch (field.fieldKind) {
      case "scalar":
        return structuredClone(SCALARS[field.scalar]);
      case "enum":
        return this.#enum(field.enum);
      case "message":
        return this.#messageValue(field.message, side);
      case "list":
        return { type: "array", items: this.#listElement(field, side) };
      case "map":
        return { type: "object", additionalProperties: this.#element(field.mapKind, field, side) };
    }
  }

  /** An element whose rules are left to the service fails alone there, so that a request may have it. */
  #listElement(field: DescField & { fieldKind: "list" }, side: Side): Schema {
    const element = this.#element(field.listKind, field, side);
    if (side !== "request" || !leavesElements(field)) return element;
    return {
      anyOf: [element, { type: "object", description: "What breaks a rule of an element: it fails alone." }],
    };
  }

  #element(kind: string, { scalar, enum: values, message }: DescField, side: Side): Schema {
    if (kind === "message" && message) return this.#messageValue(message, side);
    if (kind === "enum" && values) return this.#enum(values);
    return structuredClone(SCALARS[scalar ?? ScalarType.STRING]);
  }

  #messageValue(message: DescMessage, side: Side): Schema {
    const own = WELL_KNOWN[message.typeName];
    if (own) return structuredClone(own);
    if (message.typeName.startsWith("google.protobuf."))
      throw new Error(`${message.typeName} has no schema here`);
    return this.reference(message, side);
  }

  #enum(values: DescEnum): Schema {
    const { typeName } = values;
    if (!this.schemas.has(typeName)) {
      const list = values.values.map(
        (value) => `- \`${value.name}\`: ${textOf(value).replaceAll("\n", " ")}`,
      );
      this.schemas.set(typeName, {
        type: "string",
        ...descriptionOf(textOf(values), list.join("\n")),
        enum: values.values.map(({ name }) => name),
      });
    }
    return { $ref: `#/components/schemas/${typeName}` };
  }
}

/** Returns the names of the messages within messages, and their own. */
function reachable(messages: readonly DescMessage[]): Set<string> {
  const names = new Set<string>();
  const waiting = [...messages];
  for (let message = waiting.pop(); message; message = waiting.pop()) {
    if (names.has(message.typeName)) continue;
    names.add(message.typeName);
    for (const { message: inner } of message.fields) if (inner) waiting.push(inner);
  }
  return names;
}

/** Returns whether answers have a field always, with its empty value too. */
function isAlwaysSent({ presence }: DescField): boolean {
  return presence === FeatureSet_FieldPresence.IMPLICIT;
}

function isHolder(schema: unknown): schema is Schema {
  return typeof schema === "object" && schema !== null;
}

/** Refuses the values of an enum that a rule refuses. */
function leaveOut(schema: Schema, values: DescEnum | undefined): void {
  const { notIn, $ref } = schema;
  delete schema.notIn;
  if (!values || !$ref || !Array.isArray(notIn) || notIn.length === 0) return;
  const names = values.values.filter(({ number }) => notIn.includes(number)).map(({ name }) => name);
  schema.not = { enum: names };
}

/** Returns what each oneof means, as sentences. */
function oneofNotes({ oneofs }: DescMessage): string[] {
  return oneofs.map((oneof) => {
    const names = oneof.fields.map(({ jsonName }) => `\`${jsonName}\``).join(", ");
    const isOne = hasOption(oneof, oneofRules) && getOption(oneof, oneofRules).required;
    return described(`${isOne ? "Exactly" : "At most"} one of ${names}.`, textOf(oneof));
  });
}

/**
 * Returns the keywords of the oneofs: each field that is there excludes the others. Written so that tools that make
 * clients, and know no alternatives within an object, may leave them out.
 */
function oneofKeywords({ oneofs }: DescMessage): Schema {
  const dependentSchemas: Record<string, Schema> = {};
  const missing: Schema[] = [];
  for (const oneof of oneofs) {
    const names = oneof.fields.map(({ jsonName }) => jsonName);
    const none = (left: readonly string[]) => ({
      properties: Object.fromEntries(left.map((name) => [name, NOTHING])),
    });
    if (names.length > 1) {
      for (const name of names) dependentSchemas[name] = none(names.filter((other) => other !== name));
    }
    if (hasOption(oneof, oneofRules) && getOption(oneof, oneofRules).required) missing.push(none(names));
  }
  return {
    ...(Object.keys(dependentSchemas).length > 0 && { dependentSchemas }),
    ...(missing.length > 0 && { not: missing.length === 1 ? missing[0] : { anyOf: missing } }),
  };
}

function descriptionOf(...parts: readonly (string | undefined)[]): Schema {
  const description = described(...parts);
  return description ? { description } : {};
}
