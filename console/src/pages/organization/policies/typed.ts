import type { JsonValue } from "@bufbuild/protobuf";
import { type FieldKind, POLICY_FIELDS } from "./fields.ts";

/** Typed values by path, all of them text. */
export type Typed = Readonly<Record<string, string>>;

/** Returns the policies as the form shows them. @param json of OrganizationPolicies */
export function typedOf(json: JsonValue): Typed {
  return Object.fromEntries(POLICY_FIELDS.map(({ path, kind }) => [path, textOf(valueAt(json, path), kind)]));
}

/**
 * Returns the change from one state of the form to another, as JSON of UpdateOrganizationPoliciesRequest; undefined
 * for none.
 * @throws Error with the field's label for text that is not JSON
 */
export function changeOf(before: Typed, after: Typed): { readonly [name: string]: JsonValue } | undefined {
  const change: { [name: string]: JsonValue } = {};
  const cleared: string[] = [];
  for (const { path, label, kind } of POLICY_FIELDS) {
    const text = after[path] ?? "";
    if (text === before[path]) continue;
    const value = parsed(text, label, kind);
    if (value === undefined) cleared.push(path);
    else put(change, path.split("."), value);
  }
  if (cleared.length > 0) change.updateMask = cleared.join(",");
  return Object.keys(change).length === 0 ? undefined : change;
}

function textOf(value: JsonValue | undefined, kind: FieldKind): string {
  switch (kind.case) {
    case "switch":
      return value === true ? "true" : "";
    case "count":
      return String(value ?? 0);
    case "span": {
      const seconds = typeof value === "string" ? Number(value.replace(/s$/, "")) : 0;
      return seconds === 0 ? "" : String(seconds / kind.seconds);
    }
    case "lines":
      return Array.isArray(value) ? value.join("\n") : "";
    case "choice":
      return typeof value === "string" ? value : (kind.choices[0]?.[0] ?? "");
    case "json":
      return value === undefined || isEmpty(value) ? "" : JSON.stringify(value, null, 2);
    default:
      return typeof value === "string" ? value : "";
  }
}

/** Returns undefined for a cleared field. */
function parsed(text: string, label: string, kind: FieldKind): JsonValue | undefined {
  const trimmed = text.trim();
  switch (kind.case) {
    case "switch":
      return text === "true";
    case "count":
      return trimmed === "" ? 0 : Number(trimmed);
    case "span":
      return trimmed === "" ? undefined : `${Number(trimmed) * kind.seconds}s`;
    case "lines": {
      const lines = text.split("\n").map((line) => line.trim());
      const kept = lines.filter((line) => line !== "");
      return kept.length === 0 ? undefined : kept;
    }
    case "json":
      if (trimmed === "") return undefined;
      try {
        return JSON.parse(trimmed) as JsonValue;
      } catch (error) {
        throw new Error(`“${label}” is no JSON: ${(error as Error).message}`);
      }
    default:
      return trimmed;
  }
}

function put(
  into: { [name: string]: JsonValue },
  [name = "", ...rest]: readonly string[],
  value: JsonValue,
): void {
  if (rest.length === 0) {
    into[name] = value;
    return;
  }
  into[name] ??= {};
  put(into[name] as { [name: string]: JsonValue }, rest, value);
}

function valueAt(json: JsonValue | undefined, path: string): JsonValue | undefined {
  let value = json;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    value = value[name];
  }
  return value;
}

const isEmpty = (value: JsonValue): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length === 0;
