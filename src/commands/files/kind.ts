import { type DescMessage, type MessageInitShape, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { ResourceChangeSchema } from "#gen/service/v1/resource_service_pb.js";
import { type JsonObject, type Path, valueAt } from "./folder.ts";

export type Change = NonNullable<MessageInitShape<typeof ResourceChangeSchema>["change"]>;

/** Values for the changes of a resource, in addition to its message. */
export interface ChangeContext {
  readonly organizationId: string;
  /** Id of the resource; the placeholder of one that is to be created. */
  readonly id: string;
  /** Annotations that the resource is to have, the owner among them. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The document as it is written, names in place of ids resolved. */
  readonly content: JsonObject;
}

/** A kind of resource that files describe. */
export interface Kind<D extends DescMessage = DescMessage> {
  /** Name of the message, which documents give as their kind. */
  readonly name: string;
  readonly schema: D;
  /** Fields that a file can set; the server sets the others. */
  readonly fields: readonly string[];
  /** The field with the name, by which files know a resource; undefined for what an organization has one of. */
  readonly nameField?: Path;
  /** The field with the annotations; undefined where a resource belongs to no folder. */
  readonly annotationsField?: Path;
  /** Fields that cannot be changed once the resource is created. */
  readonly immutableFields?: readonly string[];
  /** Paths of fields in a document by the top-level fields of requests that set them, where the two differ. */
  readonly documentFields: Readonly<Record<string, string>>;
  /** Values of fields that a document leaves out. */
  readonly defaults?: JsonObject;
  create?(message: MessageShape<D>, context: ChangeContext): Change[];
  update(message: MessageShape<D>, context: ChangeContext, current: MessageShape<D>): Change[];
  /** Absent where nothing is removed. */
  remove?(id: string): Change;
  /** Returns whether there is nothing left to remove of a resource. */
  isGone?(message: MessageShape<D>): boolean;
}

/** Returns a kind among those of other messages. */
export const define = <D extends DescMessage>(kind: Kind<D>): Kind => kind as unknown as Kind;

/** Returns the fields of a resource that files can set, as JSON without empty ones. */
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
    // A default that is not the contract's own: its opposite is written.
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

/** Returns the field of a document that a field of a request is about. */
export function documentFieldOf({ documentFields }: Kind, field: string): string {
  const first = /^[^.[]*/.exec(field)?.[0] ?? "";
  return (documentFields[first] ?? first) + field.slice(first.length);
}
