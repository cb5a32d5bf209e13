import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  DecideApprovalRequestSchema as Decide,
  GetApprovalRequestSchema as Get,
  ListApprovalsRequestSchema as List,
} from "#gen/service/v1/approval_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const DIGEST = "0123456789abcdef".repeat(4);
const noId: readonly JsonValue[] = ["", "x", `${ID}0`];

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [List, {}],
  [Get, {}],
  [Decide, { approvalId: ID, digest: DIGEST, decision: 1 }],
]);

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [
    List,
    [
      ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
      ["filter.states", lists(1, 0, 24, 25), [...lists(1, 26), [6]]],
      ["filter.agentExecutionIds", lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]],
      ["filter.workflowExecutionIds", lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]],
    ],
  ],
  [Get, [["approvalId", [ID], noId]]],
  [
    Decide,
    [
      ["approvalId", [ID], noId],
      ["digest", [DIGEST], ["", DIGEST.slice(1), `${DIGEST}0`, DIGEST.toUpperCase()]],
      ["decision", [1, 2], [0, 3]],
      ["optionId", texts(0, 127, 128), texts(129)],
      ["reason", texts(0, 2_047, 2_048), texts(2_049)],
      ["answerJson", texts(0, 65_535, 65_536), texts(65_537)],
    ],
  ],
]);

const rows = [...LIMITS].flatMap(([request, limits]) => limits.map((limit) => [request, ...limit] as const));
const tell = (request: DescMessage, path: string, value: JsonValue) =>
  complaint(request, withValue(VALID.get(request) ?? {}, path, value));

describe("a request about approvals within a limit", () => {
  const cases = rows.flatMap(([request, path, passes]) =>
    passes.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toBeUndefined();
  });
});

describe("a request about approvals past a limit", () => {
  const cases = rows.flatMap(([request, path, , fails]) =>
    fails.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s does not take %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toContain(` [${path}`);
  });
});
