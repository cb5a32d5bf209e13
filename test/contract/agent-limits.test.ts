import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  DeleteAgentExecutionRequestSchema as Delete,
  ForkAgentExecutionRequestSchema as Fork,
  GetAgentExecutionRequestSchema as Get,
  ListAgentExecutionsRequestSchema as List,
  ListAgentsRequestSchema as ListAgents,
  StartAgentRequestSchema as Start,
  StopAgentExecutionRequestSchema as Stop,
} from "#gen/service/v1/agent_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

const URL = "https://git.example.org/";
const id: readonly JsonValue[] = [ID];
const noId: readonly JsonValue[] = ["", "x", `${ID}0`];
const pairs = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`example.org/k${index}`, ""]));
const pageSizes: Limit = ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]];

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Start, {}],
  [Fork, { agentExecutionId: ID }],
  [List, {}],
  [ListAgents, {}],
]);

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [
    Fork,
    [
      ["agentExecutionId", id, noId],
      ["sequence", ["1", "9007199254740993"], ["0", "-1"]],
      ["name", texts(0, 99, 100), [...texts(101), "a\nb", "a\u007f"]],
      ["turnOptions.modes", lists("AGENT_MODE_SPEC", 0, 4), lists("AGENT_MODE_SPEC", 5)],
    ],
  ],
  [
    Start,
    [
      ["agentId", ["", ID], ["x", `${ID}0`]],
      ["runnerId", ["", ID], ["x"]],
      ["sessionId", ["", ID], ["x"]],
      ["workflowActionId", id, noId],
      ["codeContext.projectId", id, noId],
      ["codeContext.environmentId", id, noId],
      [
        "codeContext.contextUrl.url",
        [URL + "x".repeat(2_047 - URL.length), URL + "x".repeat(2_048 - URL.length)],
        [URL + "x".repeat(2_049 - URL.length), "", "no URL", "https://me:secret@git.example.org/"],
      ],
      ["codeContext.pullRequest.id", texts(0, 127, 128), texts(129)],
      ["codeContext.pullRequest.title", texts(0, 499, 500), texts(501)],
      ["codeContext.pullRequest.fromBranch", texts(0, 255), texts(256)],
      ["codeContext.pullRequest.toBranch", texts(0, 255), texts(256)],
      ["codeContext.pullRequest.url", texts(0, 2_048), texts(2_049)],
      ["codeContext.pullRequest.author", texts(0, 255), texts(256)],
      ["codeContext.pullRequest.headSha", texts(0, 64), texts(65)],
      ["codeContext.pullRequest.state", [0, 3], [4]],
      ["codeContext.pullRequest.repository.cloneUrl", texts(0, 2_048), texts(2_049)],
      ["codeContext.pullRequest.repository.host", texts(0, 253), texts(254)],
      ["codeContext.pullRequest.repository.owner", texts(0, 255), texts(256)],
      ["codeContext.pullRequest.repository.name", texts(0, 255), texts(256)],
      ["mode", [0, 5], [6]],
      ["annotations", [pairs(0), pairs(31), pairs(32)], [pairs(33)]],
      ["extAgentSettings.model", [0, 10], [11]],
      ["extAgentSettings.reasoningEffort", [0, 6], [7]],
      ["extAgentSettings.serviceTier", [0, 1], [2]],
    ],
  ],
  [
    List,
    [
      pageSizes,
      ["filter.agentIds", lists("x", 0, 24, 25), [...lists("x", 26), texts(129).slice(0, 1)]],
      ["filter.projectIds", lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]],
      ["filter.environmentIds", lists("x", 0, 24, 25), [...lists("x", 26), texts(129).slice(0, 1)]],
      ["filter.creatorIds", lists("x", 0, 24, 25), [...lists("x", 26), texts(129).slice(0, 1)]],
      ["filter.statusPhases", lists(10, 0, 24, 25), [...lists(10, 26), [11]]],
      ["filter.roles", lists(1, 0, 24, 25), [...lists(1, 26), [3]]],
      ["filter.annotations", [pairs(0), pairs(24), pairs(25)], [pairs(26)]],
      ["filter.sessionIds", lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]],
      ["filter.agentExecutionIds", lists(ID, 0, 99, 100), [...lists(ID, 101), ["x"]]],
    ],
  ],
  [ListAgents, [pageSizes]],
  ...[Get, Stop, Delete].map((request): [DescMessage, Limit[]] => [
    request,
    [["agentExecutionId", id, noId]],
  ]),
]);

const rows = [...LIMITS].flatMap(([request, limits]) => limits.map((limit) => [request, ...limit] as const));
const tell = (request: DescMessage, path: string, value: JsonValue) =>
  complaint(request, withValue(VALID.get(request) ?? {}, path, value));

describe("a request about agents within a limit", () => {
  const cases = rows.flatMap(([request, path, passes]) =>
    passes.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toBeUndefined();
  });
});

describe("a request about agents past a limit", () => {
  const cases = rows.flatMap(([request, path, , fails]) =>
    fails.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s does not take %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toContain(` [${path}`);
  });
});

describe("the annotations of a new run", () => {
  const annotated = (key: string, value = "") => tell(Start, "annotations", { [key]: value });
  const long = (length: number) => `example.org/${"x".repeat(length - "example.org/".length)}`;

  test.each([
    "example.org/ticket",
    "Example.ORG/a.b_c-d",
    "local/x",
    "a/1",
    "x-y.z/größe",
    long(127),
    long(128),
  ])("have the key %s", (key) => {
    expect(annotated(key)).toBeUndefined();
  });

  test.each([
    "",
    "ticket",
    "/ticket",
    "example.org/",
    "a/b/c",
    "exa mple/x",
    "a/b c",
    ".org/x",
    "-a/x",
    "a./x",
    "ä/x",
    long(129),
  ])("have no key %j", (key) => {
    expect(annotated(key)).toContain(" [annotations");
  });

  test("have values of at most 512 characters", () => {
    for (const value of texts(511, 512)) expect(annotated("a/b", value)).toBeUndefined();
    for (const value of texts(513)) expect(annotated("a/b", value)).toContain(" [annotations");
  });
});
