/** A schema of JSON Schema 2020-12 while it is made. */
export type Schema = Record<string, unknown>;

const GREATER: ReadonlySet<string> = new Set(["minLength", "minItems", "minProperties", "minimum"]);
const LESSER: ReadonlySet<string> = new Set(["maxLength", "maxItems", "maxProperties", "maximum"]);

/**
 * Adds keywords to those that a schema has; the narrower of two limits stays.
 *
 * @throws Error for two keywords that cannot be combined into one
 */
export function constrain(schema: Schema, keywords: Schema): void {
  for (const [name, value] of Object.entries(keywords)) {
    const present = schema[name];
    if (value === undefined || (GREATER.has(name) && value === 0 && name !== "minimum")) continue;
    if (present === undefined) schema[name] = value;
    else if (GREATER.has(name)) schema[name] = Math.max(Number(present), Number(value));
    else if (LESSER.has(name)) schema[name] = Math.min(Number(present), Number(value));
    else if (name === "not") schema.not = eitherNot(present as Schema, value as Schema);
    else if (JSON.stringify(present) !== JSON.stringify(value))
      throw new Error(`two rules have the keyword ${name}: ${JSON.stringify([present, value])}`);
  }
}

/** Joins what two keywords refuse. */
function eitherNot(one: Schema, other: Schema): Schema {
  if (typeof one.pattern === "string" && typeof other.pattern === "string")
    return { pattern: `${one.pattern}|${other.pattern}` };
  return { anyOf: [one, other] };
}
