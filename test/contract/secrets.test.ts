import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { expect, test } from "@jest/globals";
import { compile } from "./buf.ts";

/** Tokens of pages, which open nothing. */
const NO_SECRETS = new Set([
  "service.v1.PaginationRequest.token",
  "service.v1.PaginationResponse.next_token",
]);

const fields: DescField[] = [...compile("proto").files]
  .filter(({ proto }) => proto.package === "service.v1" || proto.package === "runner.v1")
  .flatMap((file) => [...nestedTypes(file)])
  .filter((type): type is DescMessage => type.kind === "message")
  .flatMap((message) => message.fields);
const nameOf = (field: DescField) => `${field.parent.typeName}.${field.name}`;

test("every text that is called a token, a secret or a password is marked as one", () => {
  const unmarked = fields.filter(
    (field) =>
      field.scalar === ScalarType.STRING &&
      /(^|_)(token|secret|password)$/.test(field.name) &&
      !field.proto.options?.debugRedact,
  );
  expect(unmarked.map(nameOf).filter((name) => !NO_SECRETS.has(name))).toEqual([]);
});

test("what is marked is a text, which an answer that is stored can do without", () => {
  const marked = fields.filter((field) => field.proto.options?.debugRedact);
  expect(marked.length).toBeGreaterThan(10);
  expect(marked.filter(({ scalar }) => scalar !== ScalarType.STRING).map(nameOf)).toEqual([]);
});
