import type { DescField, DescMessage } from "@bufbuild/protobuf";

/** A field that a request can set, with the fields that lead to it, itself last. */
export interface Reached {
  readonly field: DescField;
  readonly way: readonly DescField[];
  /** JSON names joined by dots after the request's name, such as `GetProjectRequest.projectId`. */
  readonly path: string;
}

/**
 * Returns every field that can be set in a request, at any depth; well-known types count as values.
 *
 * @throws when a message contains itself: such a request would have no upper bound
 */
export function reachFrom(request: DescMessage): Reached[] {
  return walk(request, [], new Set(), request.name);
}

function walk(
  message: DescMessage,
  way: readonly DescField[],
  around: ReadonlySet<DescMessage>,
  path: string,
): Reached[] {
  if (around.has(message)) throw new Error(`${message.typeName} contains itself`);
  return message.fields.flatMap((field) => {
    const here: Reached = { field, way: [...way, field], path: `${path}.${field.jsonName}` };
    if (!field.message || isWellKnown(field.message)) return [here];
    return [here, ...walk(field.message, here.way, new Set([...around, message]), here.path)];
  });
}

/** Returns whether a message has its own JSON form, such as a timestamp. */
export function isWellKnown(message: DescMessage): boolean {
  return message.typeName.startsWith("google.protobuf.");
}
