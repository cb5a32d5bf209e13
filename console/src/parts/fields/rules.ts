import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";

const validator = createValidator();

/** The sentences of the rules that a message breaks, by the paths of their fields. */
export type Breaches = ReadonlyMap<string, readonly string[]>;

/**
 * Returns what the contract itself says against a message, by the rules that the server has. Loaded when a form opens:
 * it is larger than all the rest of the page.
 */
export function breachesOf<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Breaches {
  const { kind, violations, error } = validator.validate(schema, message);
  if (kind === "error") throw error;
  const breaches = new Map<string, string[]>();
  for (const { field, message } of violations ?? []) {
    const path = pathToString(field);
    breaches.set(path, [...(breaches.get(path) ?? []), message]);
  }
  return breaches;
}
