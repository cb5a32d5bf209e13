import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  CreateSecretRequestSchema as Create,
  DeleteSecretRequestSchema as Delete,
  ListSecretsRequestSchema as List,
  UpdateSecretValueRequestSchema as Update,
} from "#gen/service/v1/secret_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const noId: readonly JsonValue[] = ["x", `${ID}0`];
const name = (characters: number) => "x".repeat(characters);
const path = (characters: number) => `/${"x".repeat(characters - 1)}`;

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Create, { name: "NPM_TOKEN" }],
  [Update, { secretId: ID, value: "x" }],
  [List, {}],
  [Delete, { secretId: ID }],
]);

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [
    Create,
    [
      ["name", ["a_9", name(126), name(127)], ["", "ab", name(128), "a-b", "a b", "äbc"]],
      ["projectId", texts(0, 36), texts(37)],
      ["value", texts(0, 10_239, 10_240), texts(10_241)],
      ["filePath", [path(1), path(1_023), path(1_024)], [path(1_025), "", "a/b", "~/a"]],
      ["containerRegistryBasicAuthHost", texts(0, 253), texts(254)],
      ["scope.projectId", [ID], ["", ...noId]],
      ["scope.userId", [ID], ["", ...noId]],
      ["scope.organizationId", [ID], ["", ...noId]],
      ["scope.serviceAccountId", [ID], ["", ...noId]],
      ["credentialProxy.targetHosts", lists("x", 0, 25), lists("x", 26)],
      ["credentialProxy.header", texts(0, 128), texts(129)],
    ],
  ],
  [
    Update,
    [
      ["secretId", [ID], ["", ...noId]],
      ["value", texts(1, 10_239, 10_240), texts(0, 10_241)],
    ],
  ],
  [
    List,
    [
      ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
      ["filter.projectIds", lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]],
      ["filter.scope.projectId", [ID], ["", ...noId]],
    ],
  ],
  [Delete, [["secretId", [ID], ["", ...noId]]]],
]);

const rows = [...LIMITS].flatMap(([request, limits]) => limits.map((limit) => [request, ...limit] as const));
const tell = (request: DescMessage, at: string, value: JsonValue) =>
  complaint(request, withValue(VALID.get(request) ?? {}, at, value));

describe("a request about secrets within a limit", () => {
  const cases = rows.flatMap(([request, at, passes]) =>
    passes.map((value) => [request.name, at, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, at, __, request, value) => {
    expect(tell(request, at, value)).toBeUndefined();
  });
});

describe("a request about secrets past a limit", () => {
  const cases = rows.flatMap(([request, at, , fails]) =>
    fails.map((value) => [request.name, at, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s does not take %s", (_, at, __, request, value) => {
    expect(tell(request, at, value)).toContain(` [${at}`);
  });
});

test("a path that is not absolute is refused in the words of the contract", () => {
  expect(tell(Create, "filePath", "a/b")).toContain("value must be an absolute path (e.g. /path/to/file)");
});
