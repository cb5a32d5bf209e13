import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  CreateWorkflowRequestSchema as Create,
  ListWorkflowExecutionActionsRequestSchema as ListActions,
  ListWorkflowTriggerEventsRequestSchema as ListEvents,
  ListWorkflowExecutionsRequestSchema as ListExecutions,
  ListWorkflowExecutionOutputsRequestSchema as ListOutputs,
  ListPullRequestsRequestSchema as ListPullRequests,
  ListWorkflowsRequestSchema as ListWorkflows,
  StreamActionLogsRequestSchema as Logs,
  PreviewWorkflowRequestSchema as Preview,
  StartWorkflowRequestSchema as Start,
  GetWorkflowExecutionSummaryRequestSchema as Summary,
  UpdateWorkflowRequestSchema as Update,
} from "#gen/service/v1/workflow_service_pb.js";
import { brief, complaint, ID, lists, texts, withValue } from "./limit.ts";

const CONTEXT = { agent: { prompt: "x" } };
const OUTPUT = { title: "Score", key: "score", command: "cat score", string: {} };
const STEPS = [
  { task: { command: "true" } },
  { agent: { prompt: "x" } },
  { pullRequest: { title: "x", branch: "x" } },
  { report: { outputs: [OUTPUT] } },
  { approval: { message: "Deploy it?", deciders: {} } },
];
const ACTION = { limits: { maxParallel: 1, maxTotal: 1000 }, steps: STEPS };
const TRIGGERS = [
  { manual: {}, context: { repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/a"] } } } },
  {
    time: { cronExpression: "* * * * *" },
    context: { repositories: { repoSelector: { repoSearchString: "x", scmHost: "h" } } },
  },
  { pullRequest: {}, context: CONTEXT },
  { manual: {}, context: { projects: {} } },
];
const DEFINITION = {
  triggers: TRIGGERS,
  action: ACTION,
  report: structuredClone(ACTION),
  parameters: [{ key: "word" }],
};
const RANGE = { startTime: "2026-01-01T00:00:00Z", endTime: "2026-02-01T00:00:00Z" };

/** A valid request of each kind, into which the values are put. */
const VALID = new Map<DescMessage, JsonObject>([
  [Create, { name: "x", ...DEFINITION }],
  [Update, { workflowId: ID, ...DEFINITION }],
  [Start, { workflowId: ID }],
  [Preview, { schedules: [{ cronExpression: "* * * * *" }] }],
  [Summary, { filter: { dateRange: RANGE } }],
  [Logs, { workflowExecutionActionId: ID }],
]);

/** Declared parameters, so many in each list. */
const keyLists = (...lengths: number[]) =>
  lengths.map((length) => Array.from({ length }, (_, index) => ({ key: `key_${index}` })));

type Limit = readonly [path: string, passes: readonly JsonValue[], fails: readonly JsonValue[]];

/** What both write. */
const WRITTEN: readonly Limit[] = [
  ["name", texts(1, 79, 80), texts(0, 81)],
  ["description", texts(0, 499, 500), texts(501)],
  ["triggers", lists(TRIGGERS[0] ?? null, 0, 9, 10), lists(TRIGGERS[0] ?? null, 11)],
  ["agentId", ["", ID], ["x", `${ID}0`]],
  ["executor.id", ["", ID], ["x"]],
  [
    "triggers[0].context.repositories.repositoryUrls.repoUrls",
    lists("a:b", 1, 499, 500),
    lists("a:b", 0, 501),
  ],
  [
    "triggers[0].context.repositories.repositoryUrls.repoUrls[0]",
    texts(1, 2047, 2048),
    [...texts(0, 2049), "a b", "a\tb"],
  ],
  ["triggers[0].context.repositories.environmentClassId", ["", ID], ["x"]],
  ["triggers[1].time.cronExpression", texts(1, 99, 100), texts(0, 101)],
  [
    "triggers[1].time.timeZone",
    ["", "UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "x".repeat(63), "x".repeat(64)],
    ["+02:00", "/Europe", "Europe Berlin", "x".repeat(65)],
  ],
  ["triggers[1].time.overlapPolicy", [0, 1, 2, 3], [-1, 4]],
  ["triggers[1].context.repositories.repoSelector.repoSearchString", texts(1, 1023, 1024), texts(0, 1025)],
  ["triggers[1].context.repositories.repoSelector.scmHost", texts(1, 252, 253), texts(0, 254)],
  ["triggers[2].pullRequest.events", [...lists(1, 0, 9, 10), [7]], [...lists(1, 11), [8]]],
  ["triggers[2].pullRequest.webhookId", [ID], ["", "x"]],
  ["triggers[2].context.agent.prompt", texts(1, 19_999, 20_000), texts(0, 20_001)],
  ["triggers[3].context.projects.projectIds", lists(ID, 0, 999, 1000), [...lists(ID, 1001), ["x"]]],
  ["action.limits.maxParallel", [1, 24, 25], [-1, 0, 26]],
  ["action.limits.maxTotal", [1, 999, 1000], [-1, 0, 1001]],
  [
    "action.limits.perExecution.maxTime",
    ["0s", "0.001s", "2591999s", "2592000s"],
    ["-1s", "-0.000000001s", "2592000.000000001s", "2592001s"],
  ],
  ["action.steps", lists({ task: { command: "x" } }, 1, 49, 50), lists({ task: { command: "x" } }, 0, 51)],
  ["report.steps", lists({ task: { command: "x" } }, 1, 49, 50), lists({ task: { command: "x" } }, 0, 51)],
  ["action.steps[0].task.command", texts(1, 19_999, 20_000), texts(0, 20_001)],
  ["action.steps[1].agent.prompt", texts(1, 19_999, 20_000), texts(0, 20_001)],
  ["action.steps[2].pullRequest.title", texts(1, 499, 500), texts(0, 501)],
  ["action.steps[2].pullRequest.description", texts(0, 19_999, 20_000), texts(20_001)],
  ["action.steps[2].pullRequest.branch", texts(1, 254, 255), texts(0, 256)],
  ["action.steps[3].report.outputs", lists(OUTPUT, 1, 9, 10), lists(OUTPUT, 0, 11)],
  ["action.steps[3].report.outputs[0].title", texts(1, 199, 200), texts(0, 201)],
  [
    "action.steps[3].report.outputs[0].key",
    ["a", "a_b", "x".repeat(49), "x".repeat(50)],
    ["", "x".repeat(51), "A", "a1", "_a", "a_", "a__b", "a-b"],
  ],
  ["action.steps[3].report.outputs[0].acceptanceCriteria", texts(0, 4095, 4096), texts(4097)],
  ["action.steps[3].report.outputs[0].string.pattern", texts(0, 1023, 1024), texts(1025)],
  ["action.steps[3].report.outputs[0].command", texts(1, 19_999, 20_000), texts(0, 20_001)],
  ["action.steps[4].approval.message", texts(1, 4095, 4096), texts(0, 4097)],
  ["action.steps[4].approval.deciders.who", [0, 1, 2, 3], [-1, 4]],
  ["action.steps[4].approval.deciders.userIds", lists(ID, 0, 49, 50), [...lists(ID, 51), ["x"]]],
  ["action.steps[4].approval.deciders.groupIds", lists(ID, 0, 9, 10), [...lists(ID, 11), ["x"]]],
  ["action.steps[4].approval.deciders.required", [0, 1, 9, 10], [-1, 11]],
  [
    "action.steps[4].approval.timeout",
    ["60s", "60.001s", "2591999s", "2592000s"],
    ["0s", "59.999s", "2592000.000000001s", "2592001s"],
  ],
  ["parameters", keyLists(0, 1, 9, 10), [...keyLists(11), [{ key: "a" }, { key: "b" }, { key: "a" }]]],
  [
    "parameters[0].key",
    ["_", "a1", "x".repeat(127), "x".repeat(128)],
    ["", "1a", "a-b", "a.b", "é", "x".repeat(129)],
  ],
  ["parameters[0].description", texts(0, 499, 500), texts(501)],
  ["parameters[0].defaultValue", texts(0, 8191, 8192), [...texts(8193), "a\0b"]],
  ["parameters[0].payloadField", texts(0, 255, 256), texts(257)],
  ["extAgentSettings.model", [0, 10], [-1, 11]],
  ["extAgentSettings.reasoningEffort", [0, 6], [-1, 7]],
  ["extAgentSettings.serviceTier", [0, 1], [-1, 2]],
];

const PAGE: Limit = ["pagination.pageSize", [0, 1, 99, 100], [-1, 101]];
const ids = (path: string): Limit => [path, lists(ID, 0, 24, 25), [...lists(ID, 26), ["x"]]];
const phases = (path: string, last: number): Limit => [
  path,
  [...lists(1, 0, 9, 10), [last]],
  [...lists(1, 11), [last + 1]],
];
const withKey = (key: string) => ({ key });
const SEARCH: Limit = ["filter.search", texts(0, 1, 255, 256), texts(257)];

const LIMITS = new Map<DescMessage, readonly Limit[]>([
  [Create, WRITTEN],
  [
    Update,
    [...WRITTEN, ["updateMask", ["", Array(64).fill("name").join(",")], [Array(65).fill("name").join(",")]]],
  ],
  [
    ListWorkflows,
    [
      PAGE,
      ids("filter.workflowIds"),
      ids("filter.creatorIds"),
      SEARCH,
      phases("filter.statusPhases", 7),
      ["sort.field", [0, 2], [-1, 3]],
    ],
  ],
  [
    Start,
    [
      ["parameters", [{ ["k".repeat(127)]: "" }, { ["k".repeat(128)]: "" }], [{ ["k".repeat(129)]: "" }]],
      ["parameters", texts(0, 8191, 8192).map(withKey), [...texts(8193), "a\0b"].map(withKey)],
      ["contextOverride.repositories.repositoryUrls.repoUrls", lists("a:b", 1, 500), lists("a:b", 0, 501)],
    ],
  ],
  [
    ListExecutions,
    [
      PAGE,
      ids("filter.workflowExecutionIds"),
      ids("filter.workflowIds"),
      SEARCH,
      phases("filter.statusPhases", 7),
      ["sort.field", texts(0, 254, 255), texts(256)],
    ],
  ],
  [
    ListActions,
    [
      PAGE,
      ids("filter.workflowExecutionActionIds"),
      ids("filter.workflowExecutionIds"),
      ids("filter.workflowIds"),
      phases("filter.phases", 7),
    ],
  ],
  [ListOutputs, [PAGE, ids("filter.workflowExecutionIds")]],
  [
    ListPullRequests,
    [
      PAGE,
      ids("filter.workflowExecutionIds"),
      ids("filter.workflowExecutionActionIds"),
      ids("filter.environmentIds"),
      ["filter.states", [[], [0], [1, 2, 3]], [[4], [1, 1, 2, 3]]],
    ],
  ],
  [ListEvents, [PAGE, ids("filter.workflowIds"), phases("filter.verdicts", 8)]],
  [
    Logs,
    [
      ["stepIndex", [0, 48, 49], [-1, 50]],
      ["afterOffset", ["0", "1"], ["-1"]],
    ],
  ],
  [Summary, [ids("filter.workflowIds")]],
  [
    Preview,
    [
      ["workflowId", ["", ID], ["x"]],
      [
        "schedules",
        lists({ cronExpression: "* * * * *" }, 0, 9, 10),
        lists({ cronExpression: "* * * * *" }, 11),
      ],
      ["schedules[0].cronExpression", texts(1, 99, 100), texts(0, 101)],
    ],
  ],
]);

const rows = [...LIMITS].flatMap(([request, limits]) => limits.map((limit) => [request, ...limit] as const));
const tell = (request: DescMessage, path: string, value: JsonValue) =>
  complaint(request, withValue(VALID.get(request) ?? {}, path, value));

describe("a request about workflows within a limit", () => {
  const cases = rows.flatMap(([request, path, passes]) =>
    passes.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toBeUndefined();
  });
});

describe("a request about workflows past a limit", () => {
  const cases = rows.flatMap(([request, path, , fails]) =>
    fails.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s does not take %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toContain(` [${path}`);
  });

  test.each(["action", "report"])("no more actions run at once than there may be: %s.limits", (path) => {
    const limits = (maxParallel: number) => tell(Update, `${path}.limits`, { maxParallel, maxTotal: 2 });
    expect(limits(2)).toBeUndefined();
    expect(limits(3)).toBe(`maximum parallel actions must not exceed maximum total actions [${path}.limits]`);
  });

  test.each([
    [Create, "action"],
    [Create, "action.limits"],
    [Create, "triggers[0].context"],
    [Update, "action.limits"],
    [Update, "report.limits"],
    [Update, "triggers[0].context"],
    [Summary, "filter"],
    [Summary, "filter.dateRange"],
    [Summary, "filter.dateRange.startTime"],
    [Summary, "filter.dateRange.endTime"],
  ] as const)("%s has its %s", (request, path) => {
    expect(tell(request, path, null)).toBe(`value is required [${path}]`);
  });

  test.each([
    ["triggers[0]", { context: CONTEXT }, "trigger"],
    ["triggers[0].context", {}, "context"],
    ["triggers[0].context", { repositories: {} }, "repositories.repositorySelector"],
    ["action.steps[0]", {}, "step"],
    ["action.steps[3].report.outputs[0]", { title: "x", key: "x", string: {} }, "extraction"],
    ["action.steps[3].report.outputs[0]", { title: "x", key: "x", prompt: "x" }, "schema"],
  ] as const)("says in %s what it is: %j leaves the %s out", (path, value, oneof) => {
    expect(tell(Update, path, value)).toBe(`exactly one field is required in oneof [${path}.${oneof}]`);
  });
});
