/** A schema of JSON Schema 2020-12, as far as it is read here. */
export interface ToolSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, ToolSchema>>;
  readonly required?: readonly string[];
  readonly dependentSchemas?: Readonly<Record<string, ToolSchema>>;
  readonly [keyword: string]: unknown;
}

/** What gen/tools.json holds; scripts/openapi/tools.ts writes it. */
export interface ToolDocument {
  /** By full name, such as `service.v1.WorkflowService/StartWorkflow`. */
  readonly operations: Readonly<
    Record<string, { readonly description: string; readonly input: string } | undefined>
  >;
  /** By the full name of a message or enum. */
  readonly schemas: Readonly<Record<string, ToolSchema | undefined>>;
}

/** What a tool does, which decides the parameters that it has beside the operation's. */
export type ToolKind = "read" | "change" | "stream";

/** Most seconds that a tool waits for messages of a stream: clients give a call up after a minute. */
export const MAX_WAIT_SECONDS = 50;
export const DEFAULT_WAIT_SECONDS = 20;

/** The parameters of tools themselves; no request of the contract has fields of these names. */
const OWN: Readonly<Record<ToolKind, Readonly<Record<string, ToolSchema>>>> = {
  read: {},
  change: {
    idempotencyKey: {
      type: "string",
      minLength: 1,
      maxLength: 255,
      pattern: "^[\\x21-\\x7e]+$",
      description:
        "A text of your choosing, another one for each call that is to have an effect of its own. The same call with the same key has one effect, and its first answer is given again: repeat a call with its key when no answer came.",
    },
  },
  stream: {
    after: {
      type: "string",
      maxLength: 64,
      description: "`next` of an earlier answer: goes on behind what that had. Left out: from the beginning.",
    },
    waitSeconds: {
      type: "integer",
      minimum: 1,
      maximum: MAX_WAIT_SECONDS,
      description: `How long to wait for something to come. Left out: ${DEFAULT_WAIT_SECONDS}.`,
    },
  },
};

const REFERENCE = "#/components/schemas/";

/**
 * Returns the schema of a tool's arguments, which refers to nothing outside of it. Of each description the first
 * paragraph is left: a model reads all of them with each conversation.
 *
 * @param hidden fields of the request that are left out
 */
export function toolSchema(
  document: ToolDocument,
  input: string,
  hidden: readonly string[],
  kind: ToolKind,
): ToolSchema {
  const request = document.schemas[input];
  if (!request) throw new Error(`gen/tools.json has no schema ${input}`);
  const { properties = {}, dependentSchemas, description: _, ...keywords } = request;
  for (const name of hidden) {
    if (!Object.hasOwn(properties, name)) throw new Error(`${input} has no field ${name} to hide`);
  }
  for (const name of Object.keys(OWN[kind])) {
    if (Object.hasOwn(properties, name)) throw new Error(`${input} has a field ${name} of its own`);
  }
  const isShown = ([name]: readonly [string, unknown]) => !hidden.includes(name);
  const definitions: Record<string, ToolSchema> = {};
  const whole: ToolSchema = {
    ...keywords,
    properties: { ...Object.fromEntries(Object.entries(properties).filter(isShown)), ...OWN[kind] },
    ...(dependentSchemas && {
      dependentSchemas: Object.fromEntries(Object.entries(dependentSchemas).filter(isShown)),
    }),
  };
  const bundled = bundle(whole, document, definitions) as ToolSchema;
  return Object.keys(definitions).length === 0 ? bundled : { ...bundled, $defs: definitions };
}

/** Copies a schema with its references led to `definitions`, which gets what they lead to. */
function bundle(value: unknown, document: ToolDocument, definitions: Record<string, ToolSchema>): unknown {
  if (Array.isArray(value)) return value.map((each) => bundle(each, document, definitions));
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value)) {
    if (name === "$ref" && typeof each === "string") copy.$ref = define(each, document, definitions);
    else if (name === "description" && typeof each === "string") copy.description = firstParagraph(each);
    else copy[name] = bundle(each, document, definitions);
  }
  return copy;
}

function define(reference: string, document: ToolDocument, definitions: Record<string, ToolSchema>): string {
  const name = reference.slice(REFERENCE.length);
  if (!Object.hasOwn(definitions, name)) {
    const schema = document.schemas[name];
    if (!schema) throw new Error(`gen/tools.json has no schema ${name}`);
    // Before its own references are followed: messages contain themselves.
    definitions[name] = {};
    definitions[name] = bundle(schema, document, definitions) as ToolSchema;
  }
  return `#/$defs/${name}`;
}

function firstParagraph(text: string): string {
  return text.split("\n\n", 1)[0] ?? "";
}
