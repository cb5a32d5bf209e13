import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Messages } from "./messages.ts";
import type { Schema } from "./schema.ts";
import { textOf } from "./texts.ts";

/**
 * Returns what tools are made of: for each operation that can be one its comment and the name of its request's schema,
 * and these schemas, with the same rules as in the OpenAPI document.
 *
 * @param services those whose operations can be tools
 */
export function toolDocument(services: readonly DescService[]): Schema {
  const messages = new Messages([]);
  const operations = services
    .flatMap(({ methods }) => methods)
    .filter(canBeTool)
    .map((method) => {
      messages.reference(method.input, "request");
      const operation = `${method.parent.typeName}/${method.name}`;
      return [operation, { description: textOf(method), input: method.input.typeName }] as const;
    });
  const schemas = [...messages.schemas].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return { operations: Object.fromEntries(operations), schemas: Object.fromEntries(schemas) };
}

/** Unary operations, and streams of what happens. */
function canBeTool({ methodKind, idempotency }: DescMethod): boolean {
  if (methodKind === "unary") return true;
  return methodKind === "server_streaming" && idempotency === Idempotency.NO_SIDE_EFFECTS;
}
