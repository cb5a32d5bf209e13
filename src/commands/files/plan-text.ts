import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isJsonObject } from "../../domain/json-object.ts";
import { jsonText, printable } from "../client/printable.ts";
import type { Action, Plan, PlannedResource } from "./plan.ts";

/** Maximum length of a printed field value, in characters. */
const MAX_VALUE = 160;

const SIGNS: Readonly<Record<Exclude<Action, "none">, string>> = { create: "+", update: "~", remove: "-" };

/** Words for the applied part of a plan. */
export interface PlanWords {
  readonly create: string;
  readonly update: string;
  readonly remove: string;
}

export const PLANNED: PlanWords = { create: "to create", update: "to update", remove: "to remove" };
export const APPLIED: PlanWords = { create: "created", update: "updated", remove: "removed" };

/** Returns whether the server differs from the files. */
export function hasDrift({ resources }: Plan): boolean {
  return resources.some(({ action }) => action !== "none");
}

/** Returns the differences as text for people: each resource with its fields, and the counts in the last line. */
export function planText(plan: Plan, words: PlanWords): string {
  const changed = plan.resources.filter(({ action }) => action !== "none");
  const blocks = changed.map((each) => `${headOf(each)}\n${fieldsOf(each)}`);
  return printable([...blocks, `${blocks.length > 0 ? "\n" : ""}${countsOf(plan, words)}\n`].join(""));
}

/** Returns the differences as a JSON object. */
export function planJson({ owner, resources }: Plan): string {
  const changed = resources.filter(({ action }) => action !== "none");
  return jsonText({
    owner,
    changes: changed.map(({ action, kind, name, id, document, before, after }) => ({
      ...{ action, kind: kind.name, name, id },
      ...(document && { file: document.file, line: document.lineOf([]) }),
      ...{ before, after },
    })),
    unchanged: resources.length - changed.length,
    unowned: resources.filter(({ isUnowned }) => isUnowned).length,
  });
}

/** Returns the resources that would be removed, one per line. */
export function removalText({ resources }: Plan): string {
  const removed = resources.filter(({ action }) => action === "remove");
  return printable(removed.map((each) => `${headOf(each)}\n`).join(""));
}

function headOf({ action, kind, name, id, document }: PlannedResource): string {
  const sign = action === "none" ? " " : SIGNS[action];
  const place = document ? `${document.file}:${document.lineOf([])}` : "";
  const what = action === "remove" && kind.name === "EnvironmentClass" ? "it is disabled" : "";
  return [`${sign} ${kind.name}${name && `/${name}`}`, id, place, what].filter(Boolean).join("  ");
}

function fieldsOf({ action, before, after }: PlannedResource): string {
  if (action === "remove") return "";
  const [old, now] = [flat(before), flat(after)];
  const lines = [...new Set([...old.keys(), ...now.keys()])].flatMap((path) => {
    const [one, other] = [old.get(path), now.get(path)];
    if (one === other) return [];
    if (one === undefined) return `    ${path}: ${other}\n`;
    return other === undefined ? `    ${path}: ${one} -> nothing\n` : `    ${path}: ${one} -> ${other}\n`;
  });
  return lines.join("");
}

/** Returns the values in a document by path. */
function flat(json: JsonObject | undefined): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (value: JsonValue, path: string) => {
    const inner: [string, JsonValue][] = Array.isArray(value)
      ? value.map((each, at) => [`${path}[${at}]`, each])
      : isJsonObject(value)
        ? Object.entries(value).map(([key, each]) => [path ? `${path}.${keyText(key)}` : keyText(key), each])
        : [];
    if (inner.length === 0 && path !== "") found.set(path, shortened(JSON.stringify(value)));
    for (const [name, each] of inner) walk(each, name);
  };
  if (json) walk(json, "");
  return found;
}

/**
 * Returns a key on one line. People choose the keys of annotations, and a second line would look like another
 * resource.
 */
function keyText(key: string): string {
  return /[\n\t]/.test(key) ? JSON.stringify(key) : key;
}

/** Shortens a long text but keeps both ends, which distinguish it from other texts. */
function shortened(text: string): string {
  if (text.length <= MAX_VALUE) return text;
  return `${text.slice(0, MAX_VALUE / 2)} ... ${text.slice(-MAX_VALUE / 2)} (${text.length} characters)`;
}

function countsOf({ resources }: Plan, words: PlanWords): string {
  const count = (action: Action) => resources.filter((each) => each.action === action).length;
  const parts = (["create", "update", "remove"] as const)
    .filter((action) => count(action) > 0)
    .map((action) => `${count(action)} ${words[action]}`);
  const unchanged = `${count("none")} unchanged`;
  return parts.length === 0 ? `no change; ${unchanged}` : `${parts.join(", ")}; ${unchanged}`;
}
