import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import { Validator } from "@seriousme/openapi-schema-validator";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { CONTRACT } from "../../src/rpc/contract.ts";
import { openApi, schemaCheck } from "./openapi.ts";

const GOLDEN = join(import.meta.dirname, "../e2e/golden");
const methods = CONTRACT.flatMap((service) => service.methods);
const operations = Object.values(openApi().paths).map(({ post }) => post);

describe("the OpenAPI document", () => {
  test("is one by the schema of OpenAPI 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate({ ...openApi() })).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
  });

  test("has each unary operation, and a key for those that change something", () => {
    const takesKey = (path: string) =>
      openApi().paths[path]?.post.parameters.some(({ $ref }) => $ref.endsWith("/IdempotencyKey"));
    const unary = methods.filter(({ methodKind }) => methodKind === "unary");
    const expected = unary.map(({ parent, name, idempotency }) => [
      `/${parent.typeName}/${name}`,
      idempotency !== Idempotency.NO_SIDE_EFFECTS,
    ]);
    const found = Object.keys(openApi().paths).map((path) => [path, takesKey(path)]);
    expect(found.toSorted()).toEqual(expected.toSorted());
  });

  test("names each reason of a failure under a status", () => {
    const texts = Object.values(openApi().components.responses).map(({ description }) => description);
    const names = Object.keys(ErrorReason).filter((name) => Number.isNaN(Number(name)));
    const sent = names.filter((name) => name !== "UNSPECIFIED");
    expect(sent.filter((name) => !texts.some((text) => text.includes(`\`ERROR_REASON_${name}\``)))).toEqual(
      [],
    );
  });
});

describe("what the document says of calls on file", () => {
  test.each(operations.map((each) => [each.operationId, each] as const))("%s", (_, operation) => {
    const golden = join(GOLDEN, `${operation.operationId.replace("_", ".")}.json`);
    const { status } = JSON.parse(readFileSync(golden, "utf8"));
    const request = operation.requestBody.content["application/json"];
    expect(errorsOf(request.schema.$ref, request.example)).toEqual([]);
    const answer = operation.responses["200"]?.content["application/json"];
    if (status === 200) expect(errorsOf(answer?.schema.$ref, answer?.example)).toEqual([]);
    else expect(answer).not.toHaveProperty("example");
  });

  test("is said of all but those of streams", () => {
    const files = readdirSync(GOLDEN).map((name) => name.replace(/\.json$/, ""));
    const streams = methods.filter(({ methodKind }) => methodKind !== "unary");
    const described = operations.map(({ operationId }) => operationId.replace("_", "."));
    const streamed = streams.map(({ parent, name }) => `${parent.name}.${name}`);
    expect([...described, ...streamed].toSorted()).toEqual(files.toSorted());
  });
});

function errorsOf(reference = "", value: unknown): unknown {
  const check = schemaCheck(reference);
  return check(value) ? [] : check.errors;
}
