import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { TOKEN_PREFIXES } from "../../keys.ts";
import { printable } from "../client/printable.ts";
import { readText } from "../folders/file-access.ts";
import { StartError } from "../start-error.ts";

/** A value as JSON has it. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** Names of fields and positions in lists, from the top of a document on. */
export type Path = readonly (string | number)[];

/** A problem at a position of a file. */
export interface Problem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The field; empty for the document. */
  readonly field: string;
  readonly message: string;
}

/** A document of a file: one resource, or the head of the folder. */
export interface FileDocument {
  /** The path of the file, as it was found below the one that was given. */
  readonly file: string;
  readonly kind: string;
  /** The message in JSON, as it is written, without `kind`. */
  readonly content: JsonObject;
  /** Returns the line of a field, or of what is around it where the field is not written. */
  lineOf(path: Path): number;
}

/** The kind of the document that says whose resources the files describe. */
export const FOLDER_KIND = "Folder";

const EXTENSION = /\.(ya?ml|json)$/i;
/** Aliases that a document may have: more would let a small file become a large one. */
const MAX_ALIASES = 100;

/** A token or a key of ours, anywhere in a text. */
const OWN_SECRET = new RegExp(
  `\\b(${[...Object.values(TOKEN_PREFIXES), "whsec_"].join("|")})[A-Za-z0-9+/=]{8}`,
);
/** The address of something with the password for it. */
const PASSWORD = /\b[a-z][a-z0-9+.-]{0,30}:\/\/[^/?#\s:@]*:[^/?#\s@]+@/i;

/**
 * Reads the documents of a folder, and of the folders in it, or of one file.
 * @throws StartError that names each file and line with a problem; a text that looks like a secret is one
 */
export function readFolder(path: string): FileDocument[] {
  const problems: Problem[] = [];
  const documents = filesIn(path).flatMap((file) => readFile(file, problems));
  if (problems.length > 0) throw problemsError(problems);
  if (documents.length === 0)
    throw new StartError(`${path} has no documents: files end with .yaml, .yml or .json`);
  return documents;
}

/** Returns the error that lists problems, a line each. */
export function problemsError(problems: readonly Problem[]): StartError {
  const lines = problems.map(({ file, line, field, message }) =>
    oneLine([`${file}:${line}:`, field && `${field}:`, message].filter(Boolean).join(" ")),
  );
  return new StartError(lines.length === 1 ? `${lines[0]}` : `the files have problems:\n${lines.join("\n")}`);
}

/** Returns a text that may be of a file, without what would control the terminal or begin a line that looks like another. */
function oneLine(text: string): string {
  return printable(text).replace(/[\n\t]+/g, " ");
}

/** Returns a path as text, such as `spec.triggers[0].time`. */
export function pathText(path: Path): string {
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : `${at > 0 ? "." : ""}${part}`))
    .join("");
}

/** Returns whether a key of a document names a field, in JSON or as the contract writes it. */
export function isNameOf(key: string, field: string): boolean {
  return key === field || camelCase(key) === field;
}

/** Returns the name in JSON of a field of the contract. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the value of a field of a document; undefined where it is not written. */
export function valueAt(content: Json, path: Path): Json | undefined {
  let value: Json | undefined = content;
  for (const part of path) {
    if (Array.isArray(value)) value = value[Number(part)];
    else if (isObject(value)) {
      const key = Object.keys(value).find((each) => isNameOf(each, String(part)));
      value = key === undefined ? undefined : value[key];
    } else return undefined;
  }
  return value;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Calls `visit` with each text in a value, and its path. */
export function eachText(value: Json, visit: (text: string, path: Path) => void, path: Path = []): void {
  if (typeof value === "string") visit(value, path);
  else if (Array.isArray(value))
    for (const [at, each] of value.entries()) eachText(each, visit, [...path, at]);
  else if (isObject(value))
    for (const [key, each] of Object.entries(value)) eachText(each, visit, [...path, key]);
}

/** @throws StartError for a path that cannot be read */
function filesIn(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    return filesBelow(path).sort();
  } catch (error) {
    if (error instanceof StartError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StartError(
      `${path} cannot be read: ${code === "ENOENT" ? "there is no such file or folder" : message}`,
    );
  }
}

/**
 * Returns the files of a folder and of those in it. A link is refused: followed, it might lead out of the folder or
 * around in it, and left out, what is behind it would look like removed.
 */
function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.flatMap((entry) => {
    const { name } = entry;
    if (name.startsWith(".") || name === "node_modules") return [];
    const path = join(folder, name);
    if (entry.isDirectory()) return filesBelow(path);
    if (entry.isSymbolicLink() && (EXTENSION.test(name) || leadsToFolder(path)))
      throw new StartError(
        `${path} is a link, and links are not followed: put what it leads to in its place`,
      );
    return entry.isFile() && EXTENSION.test(name) ? [path] : [];
  });
}

function leadsToFolder(link: string): boolean {
  return statSync(link, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function readFile(file: string, problems: Problem[]): FileDocument[] {
  const lines = new LineCounter();
  const text = readText(file);
  // Errors without the lines that they are about: these may hold what nobody is to see.
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false });
  if (!Array.isArray(parsed)) return [];
  return parsed.flatMap((document) => {
    const lineAt = (offset: number | undefined) => Math.max(1, lines.linePos(offset ?? 0).line);
    const report = (line: number, field: string, message: string) =>
      problems.push({ file, line, field, message });
    // A warning is of a tag that is not known, as `!env`: what follows it would be taken for the value.
    const [error] = [...document.errors, ...document.warnings];
    if (error) {
      report(lineAt(error.pos[0]), "", `is no YAML: ${error.message}`);
      return [];
    }
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) return [];
    const start = lineAt(contents.range?.[0]);
    const read = contentOf(() => document.toJS({ maxAliasCount: MAX_ALIASES }) as Json);
    if (read === undefined) {
      report(start, "", `has aliases that name nothing, have no end, or are more than ${MAX_ALIASES}`);
      return [];
    }
    if (!isObject(read)) {
      report(start, "", "takes an object: `kind`, and the fields of its message");
      return [];
    }
    const { kind, ...content } = read;
    const lineOf = (path: Path) => lineAt(offsetOf(contents, path) ?? contents.range?.[0]);
    if (typeof kind !== "string") {
      report(start, "kind", "is missing: it says which message the document is, such as Project");
      return [];
    }
    eachText(content, (each, path) => {
      if (OWN_SECRET.test(each) || PASSWORD.test(each))
        report(lineOf(path), pathText(path), "holds a secret, which does not belong into files");
    });
    return [{ file, kind, content, lineOf }];
  });
}

/** Returns what is read; undefined for too many aliases, and for one within what it names. */
function contentOf(read: () => Json): Json | undefined {
  try {
    const content = read();
    // Fails for what holds itself.
    JSON.stringify(content);
    return content;
  } catch {
    return undefined;
  }
}

/** Returns the place in the text of a field, or of the nearest one around it. */
function offsetOf(contents: Node, path: Path): number | undefined {
  let found = contents.range?.[0];
  let node: unknown = contents;
  for (const part of path) {
    if (isSeq(node)) node = node.items[Number(part)];
    else if (isMap(node)) {
      const pair = node.items.find(
        (each) => isPair(each) && isScalar(each.key) && isNameOf(String(each.key.value), String(part)),
      );
      if (!pair) return found;
      if (isNode(pair.key)) found = pair.key.range?.[0];
      node = pair.value;
      continue;
    } else return found;
    if (!isNode(node)) return found;
    found = node.range?.[0];
  }
  return found;
}
