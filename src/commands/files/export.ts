import { closeSync, openSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { Document, visit } from "yaml";
import type { ServerAccess } from "../client/server-access.ts";
import { makeFolder, writeProblem } from "../folders/file-access.ts";
import { NOTHING_WRITTEN, type WhenInterrupted, written } from "../folders/interrupted.ts";
import { StartError } from "../start-error.ts";
import { readCurrent } from "./current.ts";
import { isOwner, OWNER_RULE } from "./desired.ts";
import { FOLDER_KIND } from "./folder.ts";
import { KINDS } from "./kinds.ts";
import { organizationOf } from "./plan.ts";
import { Names } from "./references.ts";

/** A server's resources as documents. */
export interface Export {
  /** Documents by file name. */
  readonly files: ReadonlyMap<string, readonly JsonObject[]>;
  /** Resources that were left out, one sentence each. */
  readonly leftOut: readonly string[];
}

/** The files of an export, by kind. */
const FILE_NAMES: Readonly<Record<string, string>> = {
  EnvironmentClass: "environment-classes.yaml",
  Group: "groups.yaml",
  SecurityPolicy: "security-policies.yaml",
  OrganizationPolicies: "policies.yaml",
  Project: "projects.yaml",
  Workflow: "workflows.yaml",
};

/**
 * Returns the server's resources that one folder may describe: those of the owner, and those without an owner.
 * @throws StartError
 */
export async function readExport(access: ServerAccess, owner: string): Promise<Export> {
  if (!isOwner(owner)) throw new StartError(`--owner takes ${OWNER_RULE}`);
  const organizationId = await organizationOf(access);
  const current = await readCurrent(access, organizationId);
  const known = current.map(({ kind, name, id }) => ({ kind: kind.name, name, id }));
  const names = new Names(access, organizationId, known);
  const leftOut: string[] = [];
  const files = new Map<string, readonly JsonObject[]>([["chartroom.yaml", [{ kind: FOLDER_KIND, owner }]]]);
  for (const kind of KINDS) {
    const documents: JsonObject[] = [];
    const all = current.filter((each) => each.kind === kind);
    const mine = all.filter((each) => each.owner === undefined || each.owner === owner);
    if (mine.length < all.length)
      leftOut.push(`${all.length - mine.length} of the kind ${kind.name} belong to other folders`);
    const counts = new Map<string, number>();
    // The folder's own resource takes a name before one without an owner.
    const owned = new Set(mine.filter((each) => each.owner === owner).map(({ name }) => name));
    const usable = mine.filter((each) => each.owner === owner || !owned.has(each.name));
    for (const { name } of usable) counts.set(name, (counts.get(name) ?? 0) + 1);
    for (const [name, count] of counts)
      if (count > 1) leftOut.push(`${count} of the kind ${kind.name} have the name ${JSON.stringify(name)}`);
    for (const resource of usable) {
      if ((counts.get(resource.name) ?? 0) > 1) continue;
      documents.push({ kind: kind.name, ...(await names.name(resource.json)) });
    }
    const file = FILE_NAMES[kind.name];
    if (file && documents.length > 0) files.set(file, documents);
  }
  return { files, leftOut };
}

/** Returns an export as one YAML text. */
export function exportText({ files }: Export): string {
  return [...files.values()].flat().map(yamlOf).join("---\n");
}

/**
 * Writes an export into a folder, which is created.
 * @returns the files
 * @throws StartError for a folder that already contains an export; removes what it wrote then
 */
export async function writeExport(
  { files }: Export,
  folder: string,
  whenInterrupted?: WhenInterrupted,
): Promise<string[]> {
  if (folder === "") throw new StartError("the folder has no name: name one, or none for standard output");
  if (folder === "-")
    throw new StartError("- is no folder: name none for standard output, or ./- for a folder of that name");
  let isWritten = false;
  // All files are written synchronously: an interrupt takes effect when they are complete.
  const allowInterrupts = whenInterrupted?.(() => (isWritten ? written(folder) : NOTHING_WRITTEN));
  const madeFolders = makeFolder(folder, 0o777);
  const paths: string[] = [];
  try {
    for (const [name, documents] of files) {
      const file = join(folder, name);
      const handle = openSync(file, "wx");
      paths.push(file);
      try {
        writeFileSync(handle, documents.map(yamlOf).join("---\n"));
      } finally {
        closeSync(handle);
      }
    }
    isWritten = true;
  } catch (error) {
    // `apply --prune` would take a partial export for a complete one.
    for (const file of paths) rmSync(file, { force: true });
    for (const made of madeFolders.toReversed()) rmdirSync(made);
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === "EEXIST" ? "there are files already: name another folder" : writeProblem(error);
    throw new StartError(`${folder} cannot be written: ${reason}`);
  } finally {
    await allowInterrupts?.();
  }
  return paths;
}

/** Characters that YAML writes unescaped although they control a terminal, end lines, or reorder or hide text. */
const CONTROLS =
  /[\u{7f}-\u{9f}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{e0000}-\u{e007f}]/gu;

/** Returns a document as YAML, with escapes for characters that control the terminal. */
function yamlOf(json: JsonObject): string {
  const document = new Document(json);
  visit(document, {
    // Only double-quoted text has escapes.
    Scalar(_, scalar) {
      if (typeof scalar.value === "string" && scalar.value.search(CONTROLS) >= 0)
        scalar.type = "QUOTE_DOUBLE";
    },
  });
  return document.toString({ lineWidth: 0 }).replace(CONTROLS, escapeOf);
}

function escapeOf(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  if (hex.length <= 2) return `\\x${hex}`;
  return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
