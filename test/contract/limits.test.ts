import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { BlockAccountRequestSchema as BlockAccount } from "#gen/service/v1/account_service_pb.js";
import {
  SendToAgentExecutionRequestSchema as SendToAgent,
  StartAgentRequestSchema as StartAgent,
} from "#gen/service/v1/agent_service_pb.js";
import {
  CreateEnvironmentRequestSchema as CreateEnvironment,
  CreateEnvironmentFromProjectRequestSchema as CreateEnvironmentFromProject,
} from "#gen/service/v1/environment_service_pb.js";
import { UpdateOrganizationPoliciesRequestSchema as UpdatePolicies } from "#gen/service/v1/organization_service_pb.js";
import {
  CreateProjectRequestSchema as CreateProject,
  CreateProjectsRequestSchema as CreateProjects,
  CreateProjectFromEnvironmentRequestSchema as FromEnvironment,
  ListProjectsRequestSchema as ListProjects,
  UpdateProjectRequestSchema as UpdateProject,
  UpdateProjectsRequestSchema as UpdateProjects,
} from "#gen/service/v1/project_service_pb.js";
import {
  ApplyChangesRequestSchema as ApplyChanges,
  PreviewChangesRequestSchema as PreviewChanges,
} from "#gen/service/v1/resource_service_pb.js";
import {
  CreateEnvironmentClassRequestSchema as CreateClass,
  CreateHostAuthenticationTokenRequestSchema as CreateHostToken,
  UpdateEnvironmentClassRequestSchema as UpdateClass,
  UpdateHostAuthenticationTokenRequestSchema as UpdateHostToken,
} from "#gen/service/v1/runner_configuration_service_pb.js";
import { CreateRunnerRequestSchema as CreateRunner } from "#gen/service/v1/runner_service_pb.js";
import {
  StartWorkflowRequestSchema as StartWorkflow,
  UpdateWorkflowRequestSchema as UpdateWorkflow,
} from "#gen/service/v1/workflow_service_pb.js";
import { brief, bytes, complaint, ID, lists, maps, texts, withValue } from "./limit.ts";

// What the Errors part of the specification quotes, word for word.
const QUOTED = {
  path: "path must not be absolute (start with a /)",
  timeout: "value must be 0s (no limit) or at least 1800s (30 minutes)",
  wholeDays: "value must be a whole number of days",
  name: "name must be between 1 and 80 characters",
  description: "description must be at most 500 characters",
  triggers: "a workflow can have at most 10 triggers",
  steps: "a workflow must have between 1 and 50 steps",
  parallel: "maximum parallel actions must be between 1 and 25",
  total: "maximum total actions must be between 1 and 1000",
  prompt: "agent prompt must be between 1 and 20,000 characters",
} as const;

const STEP = { task: { command: "true" } };
const TEXT = { text: { content: "x" } };
const TRIGGER = { manual: {}, context: { agent: { prompt: "x" } } };
const CHANGE = { deleteGroup: { groupId: ID } };
const annotated = (value: string) => ({ key: value });
const keyed = (key: string) => ({ [key]: "" });
const ACTION = { limits: { maxParallel: 1, maxTotal: 1000 }, steps: [STEP] };
const VETO_ENTRY = "vetoFilePolicy.paths.entries[0]";
const URI = "https://git.example.com/group/repository.git";

// A valid request of each kind, into which the values are put.
const VALID = new Map<DescMessage, JsonObject>([
  [ListProjects, {}],
  [CreateProject, { initializer: {} }],
  [CreateProjects, {}],
  [UpdateProject, { projectId: ID, annotations: {} }],
  [ApplyChanges, { changes: [CHANGE] }],
  [PreviewChanges, { changes: [CHANGE] }],
  [UpdateProjects, {}],
  [FromEnvironment, { environmentId: ID }],
  [BlockAccount, { accountId: ID }],
  [
    UpdatePolicies,
    {
      organizationId: ID,
      securityAgentPolicy: { customAgents: [{}] },
      egress: { hosts: [{ host: "a.example" }] },
      retention: { events: {} },
      vetoFilePolicy: { paths: { entries: [{}] } },
    },
  ],
  [UpdateWorkflow, { workflowId: ID, triggers: [TRIGGER], action: ACTION, report: ACTION }],
  [StartWorkflow, { workflowId: ID }],
  [UpdateHostToken, { id: ID, scopes: [""] }],
  [CreateHostToken, { runnerId: ID, host: "h", token: "t", scopes: [""] }],
  [StartAgent, {}],
  [
    SendToAgent,
    { agentExecutionId: ID, userInput: { inputs: [{ image: { data: "AA==", mimeType: "image/png" } }] } },
  ],
  [CreateEnvironment, {}],
  [CreateEnvironmentFromProject, { projectId: ID }],
  [CreateRunner, {}],
  [CreateClass, { runnerId: ID, displayName: "class", description: "a class" }],
  [UpdateClass, { environmentClassId: ID }],
]);

type Limit = readonly [
  request: DescMessage,
  path: string,
  passes: readonly JsonValue[],
  fails: readonly JsonValue[],
  quoted?: string,
];

// The Limits part of the specification in its order; no number comes from the
// contract. What it says of answers (the default page size, a count's cap, the
// subjects that used a project) is no rule and is tested where it happens.
const LIMITS: readonly Limit[] = [
  [ListProjects, "pagination.pageSize", [0, 1, 99, 100], [-1, 101]],
  [ListProjects, "filter.projectIds", lists(ID, 24, 25), [...lists(ID, 26), ["x"]]],
  [ListProjects, "filter.runnerIds", lists(ID, 24, 25), [...lists(ID, 26), ["x"]]],
  [ListProjects, "filter.runnerKinds", lists(2, 24, 25), [...lists(2, 26), [99]]],
  [ListProjects, "filter.specRemoteUris", lists(URI, 24, 25), [...lists(URI, 26), ["no URI"]]],
  [ListProjects, "filter.creatorIds", lists(ID, 24, 25), [...lists(ID, 26), ["x"]]],
  [ListProjects, "filter.search", texts(0, 1, 255, 256), texts(257)],
  [CreateProjects, "projects", lists({}, 1, 99, 100), lists({}, 0, 101)],
  [UpdateProjects, "projects", lists({}, 1, 99, 100), lists({}, 0, 101)],
  [CreateProject, "name", texts(1, 79, 80), texts(0, 81), QUOTED.name],
  [UpdateProject, "name", texts(1, 79, 80), texts(0, 81), QUOTED.name],
  [UpdateProject, "annotations.values", maps(0, 31, 32), maps(33)],
  [UpdateProject, "annotations.values", texts(0, 511, 512).map(annotated), texts(513).map(annotated)],
  [UpdateProject, "annotations.values", texts(1, 127, 128).map(keyed), texts(0, 129).map(keyed)],
  [ApplyChanges, "changes", lists(CHANGE, 1, 199, 200), lists(CHANGE, 0, 201)],
  [PreviewChanges, "changes", lists(CHANGE, 1, 199, 200), lists(CHANGE, 0, 201)],
  [ApplyChanges, "changes[0].placeholderId", ["", ID], ["x", `${ID}0`, ID.replace("0", "G")]],
  [FromEnvironment, "name", texts(1, 79, 80), texts(0, 81), QUOTED.name],
  [CreateProject, "technicalDescription", texts(0, 8191, 8192), texts(8193)],
  [UpdateProject, "technicalDescription", texts(0, 8191, 8192), texts(8193)],
  [CreateProject, "devcontainerFilePath", ["", "a", ".a/b.json"], ["/", "/a"], QUOTED.path],
  [CreateProject, "devcontainerFilePath", ["a b", "ü"], ["a\u0000", "\u0000", "a\nb", "\u009f"]],
  [CreateProject, "automationsFilePath", ["", "a", ".a/b.yaml"], ["/", "/a"], QUOTED.path],
  [CreateProject, "automationsFilePath", ["a b", "ü"], ["a\u0000", "\u0000", "a\nb", "\u009f"]],
  [UpdateProject, "devcontainerFilePath", ["", "a", ".a/b.json"], ["/", "/a"], QUOTED.path],
  [UpdateProject, "devcontainerFilePath", ["a b", "ü"], ["a\u0000", "\u0000", "a\nb", "\u009f"]],
  [UpdateProject, "automationsFilePath", ["", "a", ".a/b.yaml"], ["/", "/a"], QUOTED.path],
  [UpdateProject, "automationsFilePath", ["a b", "ü"], ["a\u0000", "\u0000", "a\nb", "\u009f"]],
  [CreateEnvironment, "spec.devcontainer.devcontainerFilePath", ["", "a"], ["/", "/a"], QUOTED.path],
  [CreateEnvironment, "spec.devcontainer.devcontainerFilePath", ["a"], ["a\u0000"]],
  [CreateEnvironment, "spec.automationsFile.automationsFilePath", ["a"], ["a\u0000"]],
  [CreateEnvironment, "spec.automationsFile.automationsFilePath", ["", "a"], ["/", "/a"], QUOTED.path],
  ...[CreateProject, UpdateProject].map(
    (request): Limit => [
      request,
      "prebuildConfiguration.timeout",
      ["300s", "301s", "7199s", "7200s"],
      ["0s", "299s", "299.999999999s", "7200.000000001s", "7201s"],
    ],
  ),
  [BlockAccount, "reason", texts(1, 1023, 1024), texts(0, 1025)],
  [
    UpdatePolicies,
    "maximumEnvironmentTimeout",
    ["0s", "1800s", "1801s"],
    ["-1s", "0.000000001s", "1s", "1799s", "1799.999999999s"],
    QUOTED.timeout,
  ],
  [
    UpdatePolicies,
    "deleteArchivedEnvironmentsAfter",
    ["0s", "2419199s", "2419200s"],
    ["-1s", "2419200.000000001s", "2419201s"],
  ],
  [
    UpdatePolicies,
    "maximumEnvironmentLifetime",
    ["0s", "15551999s", "15552000s"],
    ["-1s", "15552000.000000001s", "15552001s"],
  ],
  [UpdatePolicies, "archiveEnvironmentsAfter", ["86400s", "172800s", "2592000s"], ["0s", "2678400s"]],
  [
    UpdatePolicies,
    "archiveEnvironmentsAfter",
    ["86400s", "2505600s"],
    ["1s", "86399s", "86400.5s", "86401s", "2591999s", "2592001s"],
    QUOTED.wholeDays,
  ],
  [UpdatePolicies, "egress.sets", lists(4, 0, 9, 10), [...lists(4, 11), [0], [5]]],
  [
    UpdatePolicies,
    "egress.hosts",
    lists({ host: "a.example" }, 0, 199, 200),
    [...lists({ host: "a.example" }, 201), [{}]],
  ],
  [UpdatePolicies, "egress.hosts[0].host", texts(1, 254, 255), texts(0, 256)],
  [UpdatePolicies, "egress.hosts[0].ports", [[], [1], [65_534, 65_535]], [[0], [-1], [65_536]]],
  [UpdatePolicies, "egress.hosts[0].ports", lists(1, 19, 20), lists(1, 21)],
  [UpdatePolicies, "retention.events.days", [0, 1, 3_649, 3_650], [-1, 3_651]],
  [UpdatePolicies, "retention.events.count", [0, 1, 99_999, 100_000], [-1, 100_001]],
  [
    UpdatePolicies,
    "defaultEnvironmentImage",
    [
      "",
      "base",
      "docker.io/library/node:24",
      `registry.example.org:5000/Team/tools@sha256:${"a".repeat(64)}`,
    ],
    ["a b", " ", "-v", "/a", "base\n", "bäse", "\u0000", "x".repeat(1025)],
  ],
  [UpdatePolicies, "agentPolicy.maxSubagentsPerEnvironment", [0, 1, 9, 10], [-1, 11]],
  [UpdateWorkflow, "name", texts(1, 79, 80), texts(0, 81), QUOTED.name],
  [UpdateWorkflow, "description", texts(0, 499, 500), texts(501), QUOTED.description],
  [UpdateWorkflow, "triggers", lists(TRIGGER, 0, 9, 10), lists(TRIGGER, 11), QUOTED.triggers],
  [UpdateWorkflow, "action.steps", lists(STEP, 1, 49, 50), lists(STEP, 0, 51), QUOTED.steps],
  [UpdateWorkflow, "report.steps", lists(STEP, 1, 49, 50), lists(STEP, 0, 51), QUOTED.steps],
  [UpdateWorkflow, "action.limits.maxParallel", [1, 24, 25], [-1, 0, 26], QUOTED.parallel],
  [UpdateWorkflow, "report.limits.maxParallel", [1, 24, 25], [-1, 0, 26], QUOTED.parallel],
  [UpdateWorkflow, "action.limits.maxTotal", [1, 999, 1000], [-1, 0, 1001], QUOTED.total],
  [UpdateWorkflow, "report.limits.maxTotal", [1, 999, 1000], [-1, 0, 1001], QUOTED.total],
  [
    UpdateWorkflow,
    "triggers[0].context.agent.prompt",
    texts(1, 19_999, 20_000),
    texts(0, 20_001),
    QUOTED.prompt,
  ],
  [StartWorkflow, "contextOverride.agent.prompt", texts(1, 19_999, 20_000), texts(0, 20_001), QUOTED.prompt],
  [
    StartWorkflow,
    "contextOverride.projects.projectIds",
    lists(ID, 0, 999, 1000),
    [...lists(ID, 1001), ["x"]],
  ],
  [StartWorkflow, "parameters", maps(0, 9, 10), maps(11)],
  [
    StartWorkflow,
    "parameters",
    [{ a: "" }, { _: "" }, { Z9: "" }, { snake_case_1: "" }],
    [{ "": "" }, { "1a": "" }, { "a-b": "" }, { "a.b": "" }, { " a": "" }, { "a\n": "" }, { ä: "" }],
  ],
  [CreateHostToken, "token", ["t", "two words", "ü~"], ["", "t\n", "\u0000", "a\u007f"]],
  [CreateHostToken, "refreshToken", ["", "t"], ["t\r\n", "\u0000"]],
  [CreateHostToken, "scopes", lists("s", 100, 101), lists("s", 102)],
  [
    CreateHostToken,
    "scopes[0]",
    ["", "read:user, ü~", ...texts(255)],
    ["a\n", "\u0000", "a\u009f", ...texts(256)],
  ],
  [UpdateHostToken, "scopes[0]", ["read"], ["a\n", "\u0000"]],
  [
    UpdatePolicies,
    `${VETO_ENTRY}.path`,
    ["", "/a b/ü", ...texts(4_096)],
    ["/a\n", "/\u0000", ...texts(4_097)],
  ],
  [StartAgent, "name", texts(0, 99, 100), texts(101)],
  [SendToAgent, "userInput.inputs", lists(TEXT, 1, 9, 10), lists(TEXT, 11)],
  [SendToAgent, "userInput.inputs[0].image.data", bytes(1, 4_194_303, 4_194_304), bytes(0, 4_194_305)],
  [SendToAgent, "userInput.inputs[0].image.mimeType", ["image/png", "image/jpeg"], ["", "image/gif"]],
  [StartAgent, "turnOptions.modes", lists(1, 0, 3, 4), [...lists(1, 5), [99]]],
  [SendToAgent, "turnOptions.modes", lists(1, 0, 3, 4), [...lists(1, 5), [99]]],
  [SendToAgent, "userInput.metadata.modes", lists(1, 0, 3, 4), [...lists(1, 5), [99]]],
];

function tell(request: DescMessage, path: string, value: JsonValue): string | undefined {
  return complaint(request, withValue(VALID.get(request) ?? {}, path, value));
}

describe("a value within a limit of the specification passes", () => {
  const cases = LIMITS.flatMap(([request, path, passes]) =>
    passes.map((value) => [request.name, path, brief(value), request, value] as const),
  );
  test.each(cases)("%s.%s takes %s", (_, path, __, request, value) => {
    expect(tell(request, path, value)).toBeUndefined();
  });
});

describe("a value past a limit of the specification is refused", () => {
  const cases = LIMITS.flatMap(([request, path, , fails, quoted]) =>
    fails.map((value) => [request.name, path, brief(value), request, value, quoted ?? ""] as const),
  );
  test.each(cases)("%s.%s refuses %s", (_, path, __, request, value, quoted) => {
    const message = tell(request, path, value);
    // The quoted text opens the message; the field that it is about follows in brackets.
    expect(message?.slice(0, quoted.length)).toBe(quoted);
    expect(message).toContain(` [${path}`);
  });

  test("every text that the specification quotes is among them", () => {
    const tried = new Set(LIMITS.map(([, , , , quoted]) => quoted));
    expect(Object.values(QUOTED).filter((quoted) => !tried.has(quoted))).toEqual([]);
  });

  test("the quoted text opens the message also when a rule over several fields is broken with it", () => {
    const message = tell(UpdateWorkflow, "action.limits", { maxParallel: 26, maxTotal: 25 });
    expect(message?.startsWith(QUOTED.parallel)).toBe(true);
  });
});

describe("the elements of a batch", () => {
  test.each([
    [CreateProjects, CreateProject],
    [UpdateProjects, UpdateProject],
  ] as const)("%s leaves a bad element to the service, which holds it against %s", (batch, element) => {
    expect(complaint(batch, { projects: [{ name: "" }] })).toBeUndefined();
    expect(complaint(element, { name: "" })).toContain(QUOTED.name);
  });
});

describe("names", () => {
  const names = [
    [CreateProject, "name"],
    [UpdateProject, "name"],
    [FromEnvironment, "name"],
    [UpdateWorkflow, "name"],
    [StartAgent, "name"],
    [CreateEnvironment, "name"],
    [CreateEnvironmentFromProject, "name"],
    [CreateRunner, "name"],
    [CreateClass, "displayName"],
    [UpdateClass, "displayName"],
    [UpdatePolicies, "securityAgentPolicy.customAgents[0].name"],
  ] as const;

  test.each(names)("%s.%s refuses every control character", (request, path) => {
    const controls = Array.from({ length: 0xa0 }, (_, code) => code).filter(
      (code) => code < 32 || code > 126,
    );
    const passed = controls.filter((code) => {
      const message = tell(request, path, `name ${String.fromCharCode(code)}`);
      return !message?.includes("name must not contain control characters");
    });
    expect(passed).toEqual([]);
  });

  test.each(names)("%s.%s takes letters of every script, spaces and emoji", (request, path) => {
    expect(tell(request, path, "Größe 東京 اسم\u00a0👩‍💻")).toBeUndefined();
  });
});
