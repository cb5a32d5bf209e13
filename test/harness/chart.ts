import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ROOT } from "./program.ts";

/** A parser of YAML that another package of the tree brings. */
const yaml = createRequire(import.meta.url)("js-yaml") as {
  safeLoad(text: string): unknown;
  safeLoadAll(text: string): unknown[];
};

// biome-ignore lint/suspicious/noExplicitAny: what a test looks into
export type Manifest = any;

/** Reads a file of YAML. */
export const readYaml = (path: string): Manifest => yaml.safeLoad(readFileSync(join(ROOT, path), "utf8"));

const CHART = "deploy/chart";

/**
 * Renders the chart by the part of Helm's language that its templates use: `if`, `if not`, `end`, a path, `quote`,
 * `required` and `toYaml … | nindent`. Anything else is an error.
 *
 * @param changes to the values, by their paths, such as `database.url`
 */
export function renderChart(changes: Readonly<Record<string, unknown>> = {}): Manifest[] {
  const values = readYaml(`${CHART}/values.yaml`);
  for (const [path, value] of Object.entries(changes)) {
    const names = path.split(".");
    const last = names.pop() ?? "";
    const parent = names.reduce((at, name) => at[name], values);
    if (!(last in parent)) throw new Error(`the chart has no value ${path}`);
    parent[last] = value;
  }
  const context = { Values: values, Release: { Name: "team" } };
  return readdirSync(join(ROOT, CHART, "templates")).flatMap((file) => {
    const text = render(readFileSync(join(ROOT, CHART, "templates", file), "utf8"), context);
    return yaml.safeLoadAll(text).filter((each) => each !== null && each !== undefined);
  });
}

function render(template: string, context: object): string {
  const open: boolean[] = [];
  let out = "";
  let from = 0;
  for (const match of template.matchAll(/(\s*\{\{-|\{\{) (.*?) \}\}/g)) {
    if (!open.includes(false)) out += template.slice(from, match.index);
    from = match.index + match[0].length;
    const action = match[2] ?? "";
    const [, not, path] = /^if (not )?(\S+)$/.exec(action) ?? [];
    if (path !== undefined) open.push(isTrue(valueAt(context, path)) !== Boolean(not));
    else if (action === "end") open.pop();
    else if (!open.includes(false)) out += evaluate(action, context);
  }
  if (open.length > 0) throw new Error("an if has no end");
  return out + template.slice(from);
}

function evaluate(action: string, context: object): string {
  const [, path = "", quote] = /^(\.\S+)( \| quote)?$/.exec(action) ?? [];
  if (path !== "")
    return quote ? JSON.stringify(String(valueAt(context, path))) : String(valueAt(context, path));
  const [, sentence, required = ""] = /^required "(.*)" (\.\S+)$/.exec(action) ?? [];
  if (sentence !== undefined) {
    const value = valueAt(context, required);
    if (value === "") throw new Error(sentence);
    return String(value);
  }
  const [, object, indent] = /^toYaml (\.\S+) \| nindent (\d+)$/.exec(action) ?? [];
  if (object === undefined) throw new Error(`the test knows no {{ ${action} }}`);
  const value = valueAt(context, object);
  const lines = Array.isArray(value)
    ? value.map((each) => `- ${JSON.stringify(each)}`)
    : [JSON.stringify(value)];
  return lines.map((line) => `\n${" ".repeat(Number(indent))}${line}`).join("");
}

/** Returns whether Helm counts the value as true: an empty list is not. */
function isTrue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

function valueAt(context: object, path: string): unknown {
  const names = path.slice(1).split(".");
  const value = names.reduce<unknown>(
    (at, name) => (at as Record<string, unknown> | undefined)?.[name],
    context,
  );
  if (value === undefined) throw new Error(`there is no ${path}`);
  return value;
}
