import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import { isJsonObject } from "../../domain/json-object.ts";
import { TOKEN_PREFIXES } from "../../keys.ts";
import { printable } from "../client/printable.ts";
import { readText } from "../folders/file-access.ts";
import { StartError } from "../start-error.ts";

/** Field names and list positions, from the top of a document. */
export type Path = readonly (string | number)[];

/** A problem in a file. */
export interface Problem {
  readonly file: string;
  /** The line, from 1. */
  readonly line: number;
  /** The field; empty for the whole document. */
  readonly field: string;
  readonly message: string;
}

/** A document in a file: one resource, or the head of the folder. */
export interface FileDocument {
  /** The path of the file, starting with the given path. */
  readonly file: string;
  readonly kind: string;
  /** The message as JSON, as written, without `kind`. */
  readonly content: JsonObject;
  /** Returns the line of a field, or of its parent if the field is missing. */
  lineOf(path: Path): number;
}

/** The kind of the document that names the owner of the resources. */
export const FOLDER_KIND = "Folder";

const EXTENSION = /\.(ya?ml|json)$/i;
/** Maximum number of aliases in a document: more would let a small file expand to a large one. */
const MAX_ALIASES = 100;

/** A Chartroom token or key, anywhere in a text. */
const OWN_SECRET = new RegExp(
  `\\b(${[...Object.values(TOKEN_PREFIXES), "whsec_"].join("|")})[A-Za-z0-9+/=]{8}`,
);
/** An address that contains a password. */
const PASSWORD = /\b[a-z][a-z0-9+.-]{0,30}:\/\/[^/?#\s:@]*:[^/?#\s@]+@/i;

/**
 * Reads the documents of a folder and its subfolders, or of one file.
 * @throws StartError that names the file and line of each problem; a text that looks like a secret is a problem
 */
export function readFolder(path: string): FileDocument[] {
  const problems: Problem[] = [];
  const documents = filesIn(path).flatMap((file) => readFile(file, problems));
  if (problems.length > 0) throw problemsError(problems);
  if (documents.length === 0)
    throw new StartError(`${path} has no documents: files end with .yaml, .yml or .json`);
  return documents;
}

/** Returns an error that lists problems, one per line. */
export function problemsError(problems: readonly Problem[]): StartError {
  const lines = problems.map(({ file, line, field, message }) =>
    oneLine([`${file}:${line}:`, field && `${field}:`, message].filter(Boolean).join(" ")),
  );
  return new StartError(lines.length === 1 ? `${lines[0]}` : `the files have problems:\n${lines.join("\n")}`);
}

/**
 * Returns a text from a file on one line, without characters that control the terminal or start a line that looks
 * like another problem.
 */
function oneLine(text: string): string {
  return printable(text).replace(/[\n\t]+/g, " ");
}

/** Formats a path, such as `spec.triggers[0].time`. */
export function pathText(path: Path): string {
  return path
    .map((part, at) => (typeof part === "number" ? `[${part}]` : `${at > 0 ? "." : ""}${part}`))
    .join("");
}

/** Returns whether a key of a document names a field, in the JSON or the contract's form. */
export function isNameOf(key: string, field: string): boolean {
  return key === field || camelCase(key) === field;
}

/** Returns the JSON name of a field in the contract. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the value of a field in a document; undefined when it is missing. */
export function valueAt(content: JsonValue, path: Path): JsonValue | undefined {
  let value: JsonValue | undefined = content;
  for (const part of path) {
    if (Array.isArray(value)) value = value[Number(part)];
    else if (isJsonObject(value)) {
      const key = Object.keys(value).find((each) => isNameOf(each, String(part)));
      value = key === undefined ? undefined : value[key];
    } else return undefined;
  }
  return value;
}

/** Calls `visit` with each text in a value and its path. */
export function eachText(value: JsonValue, visit: (text: string, path: Path) => void, path: Path = []): void {
  if (typeof value === "string") visit(value, path);
  else if (Array.isArray(value))
    for (const [at, each] of value.entries()) eachText(each, visit, [...path, at]);
  else if (isJsonObject(value))
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
 * Returns the files of a folder and its subfolders. Refuses links: following one could lead out of the folder or in a
 * cycle, and skipping one would make the files behind it look removed.
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
  // Errors must not quote lines, which may hold secrets.
  const parsed = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false });
  if (!Array.isArray(parsed)) return [];
  return parsed.flatMap((document) => {
    const lineAt = (offset: number | undefined) => Math.max(1, lines.linePos(offset ?? 0).line);
    const report = (line: number, field: string, message: string) =>
      problems.push({ file, line, field, message });
    // A warning is about an unknown tag such as `!env`; the text after it would be taken for the value.
    const [error] = [...document.errors, ...document.warnings];
    if (error) {
      report(lineAt(error.pos[0]), "", `is no YAML: ${error.message}`);
      return [];
    }
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) return [];
    const start = lineAt(contents.range?.[0]);
    const read = contentOf(() => document.toJS({ maxAliasCount: MAX_ALIASES }) as JsonValue);
    if (read === undefined) {
      report(start, "", `has aliases that name nothing, have no end, or are more than ${MAX_ALIASES}`);
      return [];
    }
    if (!isJsonObject(read)) {
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

/** Returns the content; undefined when it has too many aliases, or an alias inside its own anchor. */
function contentOf(read: () => JsonValue): JsonValue | undefined {
  try {
    const content = read();
    // Fails for a value that contains itself.
    JSON.stringify(content);
    return content;
  } catch {
    return undefined;
  }
}

/** Returns the offset in the text of a field, or of its nearest existing parent. */
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
