import { celPattern, ecmaPattern, literalPattern } from "./pattern.ts";
import { constrain, type Schema } from "./schema.ts";

const QUOTED = "'((?:[^'\\\\]|\\\\.)*)'";

/** What a part of an expression is as keywords; the first group that matches is its value. */
const FORMS: readonly (readonly [RegExp, (schema: Schema, value: string) => Schema])[] = [
  [/^size\(this\) >= (\d+)$/, (schema, value) => ({ [sizeKeyword(schema, "min")]: Number(value) })],
  [/^size\(this\) <= (\d+)$/, (schema, value) => ({ [sizeKeyword(schema, "max")]: Number(value) })],
  [/^this >= (\d+)$/, (_, value) => ({ minimum: Number(value) })],
  [/^this <= (\d+)$/, (_, value) => ({ maximum: Number(value) })],
  [/^this != 0$/, () => ({ not: { const: 0 } })],
  [
    new RegExp(`^this\\.matches\\(${QUOTED}\\)$`),
    (_, value) => ({ pattern: ecmaPattern(celPattern(value)) }),
  ],
  [
    new RegExp(`^!this\\.matches\\(${QUOTED}\\)$`),
    (_, value) => ({ not: { pattern: ecmaPattern(celPattern(value)) } }),
  ],
  [
    new RegExp(`^this\\.startsWith\\(${QUOTED}\\)$`),
    (_, value) => ({ pattern: `^${literalPattern(value)}` }),
  ],
  [
    new RegExp(`^!this\\.startsWith\\(${QUOTED}\\)$`),
    (_, value) => ({ not: { pattern: `^${literalPattern(value)}` } }),
  ],
  [
    new RegExp(`^!this\\.endsWith\\(${QUOTED}\\)$`),
    (_, value) => ({ not: { pattern: `${literalPattern(value)}$` } }),
  ],
  [new RegExp(`^!this\\.contains\\(${QUOTED}\\)$`), (_, value) => ({ not: { pattern: celPattern(value) } })],
];

/** Returns the keyword for the size of a text, a list or a map. */
function sizeKeyword({ type }: Schema, limit: "min" | "max"): string {
  const suffix = { array: "Items", object: "Properties" }[String(type)] ?? "Length";
  return `${limit}${suffix}`;
}

/**
 * Adds keywords for the parts of an expression in CEL that have such, where the parts are joined by "and": each that
 * is left out leaves the schema wider than the rule, never narrower.
 */
export function addCel(schema: Schema, expression: string): void {
  if (expression.includes("||") || expression.includes("?")) {
    // One pattern may hold either sign.
    const whole = FORMS.find(([form]) => form.test(expression));
    if (whole) add(schema, expression, whole);
    return;
  }
  for (const part of expression.split(" && ")) {
    const form = FORMS.find(([each]) => each.test(part));
    if (form) add(schema, part, form);
  }
}

function add(schema: Schema, part: string, [form, keywords]: (typeof FORMS)[number]): void {
  constrain(schema, keywords(schema, form.exec(part)?.[1] ?? ""));
}
