import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";

const validator = createValidator();

/** The messages of the rules that a request breaks, by the paths of their fields. */
export type Breaches = ReadonlyMap<string, readonly string[]>;

/**
 * Returns the rules of the contract that a message breaks, the same as the server checks. Loaded when a form opens:
 * it is larger than the rest of the page.
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
