import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** An id that may be empty in a field that tracks presence, where "ignore if zero" has no effect. */
const OPTIONAL_UUID = /^\^\$\|\^\[0-9a-fA-F\]\{8\}-/;

/** A cache of the rules of fields, since every read of an option parses it. */
const known = new WeakMap<DescField, FieldRules>();

/** Returns the rules of the contract for a field; undefined when it has none. */
export function rulesOf(field: DescField): FieldRules | undefined {
  const read = known.get(field);
  if (read || !hasOption(field, fieldRules)) return read;
  const rules = getOption(field, fieldRules);
  known.set(field, rules);
  return rules;
}

/** Returns whether rules for a string make it an id. */
export function isId(rules: FieldRules | undefined): boolean {
  if (rules?.type.case !== "string") return false;
  const { wellKnown, pattern } = rules.type.value;
  return (wellKnown.case === "uuid" && wellKnown.value) || OPTIONAL_UUID.test(pattern);
}
