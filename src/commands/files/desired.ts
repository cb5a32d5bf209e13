import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "@bufbuild/protobuf";
import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { isJsonObject } from "../../domain/json-object.ts";
import {
  annotationsIn,
  type CurrentResource,
  OWNER_ANNOTATION,
  withoutOwner,
  withoutServerDefaults,
} from "./current.ts";
import { decode, type Report } from "./decode.ts";
import { type FileDocument, FOLDER_KIND, type Path, type Problem, pathText, valueAt } from "./folder.ts";
import { type Change, type Kind, settableJson } from "./kind.ts";
import { KINDS } from "./kinds.ts";
import type { Names } from "./references.ts";

/** A document and its resource. */
export interface Matched {
  readonly document: FileDocument;
  readonly kind: Kind;
  readonly name: string;
  /** The resource; undefined for one to create. */
  readonly current: CurrentResource | undefined;
  /** Id of the resource; a placeholder for one to create. */
  readonly id: string;
}

/** The desired state of a resource, from its document. */
export interface Desired extends Matched {
  /** Empty when the resource matches the document. */
  readonly changes: readonly Change[];
  /** True for a resource that matches the document but belongs to no folder. */
  readonly isUnowned: boolean;
}

const OWNER_FORM = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const OWNER_RULE = "1 to 64 letters, digits, dots, dashes and underscores";

/** Returns whether a text can be the owner of resources. */
export const isOwner = (text: unknown): text is string => typeof text === "string" && OWNER_FORM.test(text);

/** Returns the function that records a document's problems. */
export function reporter(document: FileDocument, problems: Problem[]): Report {
  const { file } = document;
  return (path, message) =>
    problems.push({ file, line: document.lineOf(path), field: pathText(path), message });
}

/** Returns the owner in the head of a folder, and the other documents. */
export function folderOf(
  all: readonly FileDocument[],
  problems: Problem[],
): { readonly owner: string; readonly documents: FileDocument[] } {
  const [head, ...others] = all.filter(({ kind }) => kind === FOLDER_KIND);
  const documents = all.filter(({ kind }) => kind !== FOLDER_KIND);
  for (const each of others) reporter(each, problems)([], "a folder has one document Folder");
  if (!head) {
    const [first] = documents;
    const message = "the folder has no document that says its owner, such as: kind: Folder, owner: platform";
    if (first) problems.push({ file: first.file, line: 1, field: "", message });
    return { owner: "", documents };
  }
  const { owner, ...unknown } = head.content;
  const report = reporter(head, problems);
  for (const key of Object.keys(unknown)) report([key], `is no field of ${FOLDER_KIND}`);
  if (!isOwner(owner)) report(["owner"], `takes ${OWNER_RULE}`);
  return { owner: String(owner), documents };
}

/** Finds the documents' resources by kind and name. */
export function match(
  documents: readonly FileDocument[],
  current: readonly CurrentResource[],
  owner: string,
  problems: Problem[],
): Matched[] {
  const seen = new Map<string, FileDocument>();
  return documents.flatMap((document) => {
    const report = reporter(document, problems);
    const kind = KINDS.find(({ name }) => name === document.kind);
    if (!kind) {
      report(["kind"], `takes one of ${[FOLDER_KIND, ...KINDS.map(({ name }) => name)].join(", ")}`);
      return [];
    }
    const { nameField } = kind;
    const name = nameField ? valueAt(document.content, nameField) : "";
    if (typeof name !== "string" || (nameField && name === "")) {
      report(nameField ?? [], "is missing: files know a resource by its name");
      return [];
    }
    const key = `${kind.name}/${name}`;
    const earlier = seen.get(key);
    if (earlier) {
      report(nameField ?? [], `is described already, by ${earlier.file}:${earlier.lineOf(nameField ?? [])}`);
      return [];
    }
    seen.set(key, document);
    const named = current.filter((each) => each.kind === kind && each.name === name);
    const owned = named.filter((each) => each.owner === owner);
    const free = named.filter((each) => each.owner === undefined);
    const candidates = owned.length > 0 ? owned : free;
    const [found, ...others] = candidates;
    if (others.length > 0) {
      const ids = candidates.map(({ id }) => id).join(", ");
      report(nameField ?? [], `is the name of several: rename or remove all but one of ${ids}`);
      return [];
    }
    const [foreign] = named.filter((each) => !candidates.includes(each));
    if (!found && foreign) {
      report(nameField ?? [], `belongs to the folder of ${foreign.owner}`);
      return [];
    }
    return [{ document, kind, name, current: found, id: found?.id ?? randomUUID() }];
  });
}

/**
 * Returns the desired state of a document's resource. Reports problems and then returns undefined.
 * @param adopt true to take over a resource that belongs to no folder
 */
export async function desiredOf(
  matched: Matched,
  names: Names,
  { owner, organizationId, adopt }: { owner: string; organizationId: string; adopt: boolean },
  problems: Problem[],
): Promise<Desired | undefined> {
  const { document, kind, current, id } = matched;
  const before = problems.length;
  const report = reporter(document, problems);
  const content = await names.resolve({ ...kind.defaults, ...document.content }, report);
  const message = problems.length === before ? decode(kind.schema, content, report) : undefined;
  if (!message) return undefined;
  for (const path of unsettable(kind, message)) report(path, "is set by the server: leave it out");
  const json = settableJson(kind, message);
  const annotations = annotationsIn(kind, json);
  if (OWNER_ANNOTATION in annotations && kind.annotationsField)
    report([...kind.annotationsField, OWNER_ANNOTATION], "is said by the document Folder: leave it out");
  for (const field of kind.immutableFields ?? []) {
    if (current && !isDeepStrictEqual(json[field], current.json[field]))
      report([field], `cannot be changed: give the ${kind.name} another name`);
  }
  const isOwned = !kind.annotationsField || !current || current.owner === owner;
  const written = withoutServerDefaults(kind, withoutOwner(kind, json), current?.message);
  // For policies only the written fields count, and only the server can compare those.
  const isSame = kind.nameField !== undefined && isDeepStrictEqual(written, current?.json);
  if (!isOwned && !isSame && !adopt)
    report(kind.nameField ?? [], `is the name of one that no folder owns (${id}): --adopt takes it`);
  if (problems.length > before) return undefined;
  if (current && isSame && (isOwned || !adopt)) return { ...matched, changes: [], isUnowned: !isOwned };
  const context = { organizationId, id, annotations: { ...annotations, [OWNER_ANNOTATION]: owner }, content };
  const changes = current ? kind.update(message, context, current.message) : kind.create?.(message, context);
  return { ...matched, changes: changes ?? [], isUnowned: false };
}

/** Returns the paths of a message's fields that files cannot set. */
function unsettable({ schema, fields }: Kind, message: MessageShape<DescMessage>): Path[] {
  const found: Path[] = [];
  const walk = (json: JsonObject, path: readonly string[]) => {
    for (const [key, value] of Object.entries(json)) {
      const here = [...path, key];
      const text = here.join(".");
      if (fields.includes(text)) continue;
      const isOnTheWay = fields.some((field) => field.startsWith(`${text}.`));
      if (isOnTheWay && isJsonObject(value)) walk(value, here);
      else found.push(here);
    }
  };
  walk(toJson(schema, message) as JsonObject, []);
  return found;
}
