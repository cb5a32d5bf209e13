import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  CancelPrebuildRequestSchema as Cancel,
  CreatePrebuildRequestSchema as Create,
  DeletePrebuildRequestSchema as Delete,
  GetPrebuildRequestSchema as Get,
  ListPrebuildsRequestSchema as List,
} from "#gen/service/v1/prebuild_service_pb.js";
import { brief, complaint, ID, lists, withValue } from "./limit.ts";

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const noId: readonly JsonValue[] = ["", "x", `${ID}0`];
const prebuildId: readonly Limit[] = [["prebuildId", [ID], noId]];
const IDS_PASS = lists(ID, 0, 24, 25);
const IDS_FAIL: readonly JsonValue[] = [...lists(ID, 26), ["x"]];

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Create, { projectId: ID, spec: {} }],
  [Get, { prebuildId: ID }],
  [List, {}],
  [Cancel, { prebuildId: ID }],
  [Delete, { prebuildId: ID }],
]);

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [
    Create,
    [
      ["projectId", [ID], noId],
      ["environmentClassId", [ID], noId],
      ["spec.desiredPhase", [0, 10, 90], [11, 100]],
      ["spec.timeout", ["300s", "301s", "7199s", "7200s"], ["299s", "7200.001s"]],
    ],
  ],
  [Get, prebuildId],
  [Cancel, prebuildId],
  [Delete, prebuildId],
  [
    List,
    [
      ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
      ["filter.projectIds", IDS_PASS, IDS_FAIL],
      ["filter.creatorIds", IDS_PASS, IDS_FAIL],
      ["filter.executorIds", IDS_PASS, IDS_FAIL],
      ["filter.phases", lists(10, 0, 9, 10), [...lists(10, 11), [11]]],
      ["filter.triggeredBy", lists(1, 0, 4, 5), [...lists(1, 6), [3]]],
    ],
  ],
]);

const rows = [...LIMITS].flatMap(([request, limits]) => limits.map((limit) => [request, ...limit] as const));
const tell = (request: DescMessage, at: string, value: JsonValue) =>
  complaint(request, withValue(VALID.get(request) ?? {}, at, value));

describe("a request about prebuilds within a limit", () => {
  const cases = rows.flatMap(([request, at, passes]) =>
    passes.map((value) => [request.name, at, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, at, __, request, value) => {
    expect(tell(request, at, value)).toBeUndefined();
  });
});

describe("a request about prebuilds past a limit", () => {
  const cases = rows.flatMap(([request, at, , fails]) =>
    fails.map((value) => [request.name, at, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s does not take %s", (_, at, __, request, value) => {
    expect(tell(request, at, value)).toContain(` [${at}`);
  });

  test("without what has to be done is none", () => {
    expect(complaint(Create, { projectId: ID })).toContain(" [spec");
  });
});
