import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  ElicitationContentValue,
  ElicitationPropertySchema,
  ElicitationSchema,
} from "@agentclientprotocol/sdk";

/** A question that an agent asks a person. */
export interface PersonQuestion {
  readonly message: string;
  readonly schema: ElicitationSchema;
}

/** Returns the question of a request; undefined for one that a run cannot ask. */
export function questionOf(request: CreateElicitationRequest): PersonQuestion | undefined {
  if (request.mode !== "form" || !("requestedSchema" in request)) return undefined;
  return { message: request.message, schema: request.requestedSchema as ElicitationSchema };
}

/**
 * Returns the answer to a question from the JSON object that a person gave.
 * @returns undefined for one that is not of the form of the schema
 */
export function elicitationAnswer(
  { schema }: PersonQuestion,
  json: string,
): CreateElicitationResponse | undefined {
  const properties = schema.properties ?? {};
  const given = parseObject(json);
  if (!given) return undefined;
  const content: Record<string, ElicitationContentValue> = {};
  for (const [name, value] of Object.entries(given)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const fitting = property && fittingValue(property, value);
    if (fitting === undefined) return undefined;
    content[name] = fitting;
  }
  const isWhole = (schema.required ?? []).every((name) => Object.hasOwn(content, name));
  return isWhole ? { action: "accept", content } : undefined;
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(json);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a value of the property's type; undefined where the given one is none. */
function fittingValue(
  property: ElicitationPropertySchema,
  value: unknown,
): ElicitationContentValue | undefined {
  switch (property.type) {
    case "string":
      return typeof value === "string" ? chosen(choicesOf(property), value) : undefined;
    case "number":
    case "integer": {
      const number = typeof value === "string" && value !== "" ? Number(value) : value;
      if (typeof number !== "number" || !Number.isFinite(number)) return undefined;
      return property.type === "number" || Number.isInteger(number) ? number : undefined;
    }
    case "boolean":
      if (typeof value === "boolean") return value;
      if (/^(true|yes)$/i.test(String(value))) return true;
      return /^(false|no)$/i.test(String(value)) ? false : undefined;
    case "array": {
      const items = typeof value === "string" ? value.split(",").map((each) => each.trim()) : value;
      if (!Array.isArray(items)) return undefined;
      const choices = choicesOf((property as { items?: object }).items ?? {});
      const values = items.map((each) => (typeof each === "string" ? chosen(choices, each) : undefined));
      return values.every((each) => each !== undefined) ? values : undefined;
    }
    default:
      return undefined;
  }
}

interface Choice {
  readonly value: string;
  readonly title: string;
}

/** Returns what a text may be; undefined for anything. */
function choicesOf(schema: object): readonly Choice[] | undefined {
  const {
    enum: values,
    oneOf,
    anyOf,
  } = schema as {
    readonly enum?: readonly string[] | null;
    readonly oneOf?: readonly { readonly const: string; readonly title: string }[] | null;
    readonly anyOf?: readonly { readonly const: string; readonly title: string }[] | null;
  };
  const titled = oneOf ?? anyOf;
  if (titled) return titled.map(({ const: value, title }) => ({ value, title }));
  return values?.map((value) => ({ value, title: value }));
}

function chosen(choices: readonly Choice[] | undefined, text: string): string | undefined {
  if (!choices) return text;
  const folded = text.toLowerCase();
  return choices.find(({ value, title }) => value === text || title.toLowerCase() === folded)?.value;
}
