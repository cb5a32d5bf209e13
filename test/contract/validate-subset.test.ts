import type { DescEnum, DescExtension, DescField, DescFile, DescMessage } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { file_buf_validate_validate as official } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "@jest/globals";
import { compile } from "./buf.ts";

const subset = compile("third_party").getFile("buf/validate/validate.proto");
if (!subset) throw new Error("third_party has no buf/validate/validate.proto");

/** Everything in a file by its full name, in words that are equal when the wire and JSON forms are. */
function declarations(file: DescFile): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const type of nestedTypes(file)) {
    if (type.kind === "message") describeMessage(type, found);
    else if (type.kind === "enum") describeEnum(type, found);
    else if (type.kind === "extension") found.set(type.typeName, describeField(type));
    else throw new Error(`${type} is a service`);
  }
  return found;
}

function describeMessage(message: DescMessage, found: Map<string, unknown>): void {
  found.set(message.typeName, "message");
  for (const field of message.fields) found.set(`${message.typeName}.${field.name}`, describeField(field));
}

function describeField(field: DescField | DescExtension): unknown {
  const { number, type, typeName, label, jsonName, extendee } = field.proto;
  const oneof = field.kind === "field" ? field.oneof?.name : undefined;
  return { number, type, typeName, label, jsonName, extendee, oneof };
}

function describeEnum(each: DescEnum, found: Map<string, unknown>): void {
  found.set(each.typeName, "enum");
  for (const { name, number } of each.values) found.set(`${each.typeName}.${name}`, number);
}

const ours = declarations(subset);
const theirs = declarations(official);

describe("the option declarations that the contract compiles against", () => {
  test("hold the three extensions that rules are written with", () => {
    const extensions = [...nestedTypes(subset)].filter((type) => type.kind === "extension");
    expect(extensions.map(({ name, number }) => [name, number])).toEqual([
      ["message", 1159],
      ["oneof", 1159],
      ["field", 1159],
    ]);
  });

  test.each([...ours])("%s is declared as the official package declares it", (name, declared) => {
    expect(theirs.get(name)).toEqual(declared);
  });
});
