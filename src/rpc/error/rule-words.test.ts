import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import {
  type FieldRules,
  field as fieldRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "@jest/globals";
import { CONTRACT } from "../contract.ts";
import { wordsOfPattern } from "./rule-words.ts";

/** The patterns in the rules of a field, and of its elements, keys and values. */
function patternsOf({ type }: FieldRules): string[] {
  if (type.case === "string") return [type.value.pattern].filter((pattern) => pattern !== "");
  if (type.case === "repeated") return type.value.items ? patternsOf(type.value.items) : [];
  if (type.case !== "map") return [];
  return [type.value.keys, type.value.values].flatMap((rules) => (rules ? patternsOf(rules) : []));
}

const files = new Set(CONTRACT.flatMap(({ file }) => [file, ...file.dependencies]));
const messages = [...files].flatMap((file) =>
  [...nestedTypes(file)].filter((type): type is DescMessage => type.kind === "message"),
);
const patterns = new Set(
  messages.flatMap(({ fields }) =>
    fields.flatMap((each) => (hasOption(each, fieldRules) ? patternsOf(getOption(each, fieldRules)) : [])),
  ),
);

test("the contract has patterns", () => {
  expect(patterns.size).toBeGreaterThan(5);
});

test.each([...patterns])("%s has words", (pattern) => {
  expect(wordsOfPattern(pattern)).toMatch(/^must be /);
});
