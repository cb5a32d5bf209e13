/** A schema of JSON Schema 2020-12, as far as it is read here. */
export interface ToolSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, ToolSchema>>;
  readonly required?: readonly string[];
  readonly dependentSchemas?: Readonly<Record<string, ToolSchema>>;
  readonly [keyword: string]: unknown;
}

/** Contents of gen/tools.json, which scripts/openapi/tools.ts writes. */
export interface ToolDocument {
  /** By full name, such as `service.v1.WorkflowService/StartWorkflow`. */
  readonly operations: Readonly<
    Record<string, { readonly description: string; readonly input: string } | undefined>
  >;
  /** By the full name of a message or enum. */
  readonly schemas: Readonly<Record<string, ToolSchema | undefined>>;
}

/** Kind of a tool, which decides the parameters that it has in addition to the operation's. */
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
const PACKAGE = "service.v1.";

/**
 * Returns the schema of a tool's arguments, which refers to nothing outside of it. Of each description the first
 * paragraph is left: a model reads all of them with each conversation.
 *
 * @param input the name of the operation's request
 * @param hidden fields that are left out, such as `StartAgentRequest.annotations`
 */
export function toolSchema(
  document: ToolDocument,
  input: string,
  hidden: readonly string[],
  kind: ToolKind,
): ToolSchema {
  const bundling = new Bundling(document, hidden);
  const { description: _, properties, ...keywords } = bundling.message(input);
  for (const name of Object.keys(OWN[kind])) {
    if (Object.hasOwn(properties ?? {}, name)) throw new Error(`${input} has a field ${name} of its own`);
  }
  const { definitions, hiddenFields } = bundling;
  const unknown = hidden.find((each) => !hiddenFields.has(each));
  if (unknown !== undefined) throw new Error(`${input} contains no field ${unknown} to hide`);
  return {
    ...keywords,
    properties: { ...properties, ...OWN[kind] },
    ...(Object.keys(definitions).length > 0 && { $defs: definitions }),
  };
}

/** Copies schemas, and all that they refer to, into one. */
class Bundling {
  /** Schemas that the copies refer to, by the names of messages and enums. */
  readonly definitions: Record<string, ToolSchema> = {};
  /** Those of the hidden fields that there are. */
  readonly hiddenFields = new Set<string>();
  readonly #document: ToolDocument;
  readonly #hidden: readonly string[];

  constructor(document: ToolDocument, hidden: readonly string[]) {
    this.#document = document;
    this.#hidden = hidden;
  }

  /** Returns the schema of a message without the fields that are hidden. */
  message(name: string): ToolSchema {
    const schema = this.#document.schemas[name];
    if (!schema) throw new Error(`gen/tools.json has no schema ${name}`);
    const own = `${name.slice(PACKAGE.length)}.`;
    const hidden = this.#hidden.filter((each) => each.startsWith(own)).map((each) => each.slice(own.length));
    const { properties, dependentSchemas, ...keywords } = schema;
    for (const field of hidden) if (properties && field in properties) this.hiddenFields.add(own + field);
    const shown = (parts: Readonly<Record<string, ToolSchema>>) =>
      Object.fromEntries(Object.entries(parts).filter(([field]) => !hidden.includes(field)));
    return this.#copy({
      ...keywords,
      ...(properties && { properties: shown(properties) }),
      ...(dependentSchemas && { dependentSchemas: shown(dependentSchemas) }),
    }) as ToolSchema;
  }

  #copy(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#copy(each));
    if (typeof value !== "object" || value === null) return value;
    const copy: Record<string, unknown> = {};
    for (const [name, each] of Object.entries(value)) {
      if (name === "$ref" && typeof each === "string") copy.$ref = this.#define(each);
      else if (name === "description" && typeof each === "string") copy.description = firstParagraph(each);
      else copy[name] = this.#copy(each);
    }
    return copy;
  }

  #define(reference: string): string {
    const name = reference.slice(REFERENCE.length);
    if (!Object.hasOwn(this.definitions, name)) {
      // Before its own references are followed: messages contain themselves.
      this.definitions[name] = {};
      this.definitions[name] = this.message(name);
    }
    return `#/$defs/${name}`;
  }
}

function firstParagraph(text: string): string {
  return text.split("\n\n", 1)[0] ?? "";
}
