import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";

/** A rule of the contract that a message breaks. */
export interface RuleViolation {
  /** The path of the field, such as `initializer.specs[0].git.remote_uri`; empty for a rule of the whole message. */
  readonly field: string;
  /** The rule, such as `string.uuid`. */
  readonly ruleId: string;
  /** What the rule requires, for a person. */
  readonly message: string;
}

const validator = createValidator();

/**
 * Returns the rules of the contract that a request breaks, without calling a server, which checks each request in any
 * case.
 * @throws an error when a rule cannot be evaluated
 */
export function findViolations<D extends DescMessage>(
  schema: D,
  message: MessageInitShape<D>,
): RuleViolation[] {
  const { kind, violations, error } = validator.validate(schema, create(schema, message));
  if (kind === "error") throw error;
  return (violations ?? []).map(({ field, ruleId, message: text }) => ({
    field: pathToString(field),
    ruleId,
    message: text,
  }));
}
