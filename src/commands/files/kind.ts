import type { JsonObject } from "@bufbuild/protobuf";
import { type DescMessage, type MessageInitShape, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { ResourceChangeSchema } from "#gen/service/v1/resource_service_pb.js";
import { type Path, valueAt } from "./folder.ts";

export type Change = NonNullable<MessageInitShape<typeof ResourceChangeSchema>["change"]>;

/** What a resource's changes need besides its message. */
export interface ChangeContext {
  readonly organizationId: string;
  /** Id of the resource; a placeholder for one to create. */
  readonly id: string;
  /** The desired annotations of the resource, including the owner. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The document as written, with names resolved to ids. */
  readonly content: JsonObject;
}

/** A kind of resource that files describe. */
export interface Kind<D extends DescMessage = DescMessage> {
  /** Name of the message, used as the documents' kind. */
  readonly name: string;
  readonly schema: D;
  /** Fields that a file can set; the server sets all others. */
  readonly fields: readonly string[];
  /**
   * The field with the name that identifies a resource in files; undefined for a kind that an organization has only
   * one of.
   */
  readonly nameField?: Path;
  /** The field with the annotations; undefined for a kind whose resources belong to no folder. */
  readonly annotationsField?: Path;
  /** Fields that cannot change after creation. */
  readonly immutableFields?: readonly string[];
  /** Maps top-level request fields to the paths of the document fields that they set, where the two differ. */
  readonly documentFields: Readonly<Record<string, string>>;
  /** Values of fields that a document omits. */
  readonly defaults?: JsonObject;
  create?(message: MessageShape<D>, context: ChangeContext): Change[];
  update(message: MessageShape<D>, context: ChangeContext, current: MessageShape<D>): Change[];
  /** Absent for a kind whose resources are never removed. */
  remove?(id: string): Change;
  /** Returns whether a resource needs no removal. */
  isGone?(message: MessageShape<D>): boolean;
}

/** Returns a kind without its message type, to list it among others. */
export const define = <D extends DescMessage>(kind: Kind<D>): Kind => kind as unknown as Kind;

/** Returns the fields of a resource that files can set, as JSON without empty fields. */
export function settableJson(
  { schema, fields, defaults = {} }: Kind,
  message: MessageShape<DescMessage>,
): JsonObject {
  const json = toJson(schema, message) as JsonObject;
  const kept: JsonObject = {};
  for (const field of fields) {
    const path = field.split(".");
    let value = valueAt(json, path);
    const [first = ""] = path;
    // The default differs from the contract's, so write the opposite.
    if (first in defaults) value = value === defaults[first] ? undefined : (value ?? !defaults[first]);
    if (value === undefined) continue;
    let holder = kept;
    for (const name of path.slice(0, -1)) {
      const inner = (holder[name] ?? {}) as JsonObject;
      holder[name] = inner;
      holder = inner;
    }
    holder[path.at(-1) ?? ""] = value;
  }
  return kept;
}

/** Returns the document field for a request field. */
export function documentFieldOf({ documentFields }: Kind, field: string): string {
  const first = /^[^.[]*/.exec(field)?.[0] ?? "";
  return (documentFields[first] ?? first) + field.slice(first.length);
}
