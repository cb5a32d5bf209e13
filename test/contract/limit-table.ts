import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { BlockAccountRequestSchema } from "#gen/service/v1/account_service_pb.js";
import { SendToAgentExecutionRequestSchema, StartAgentRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { CreateEnvironmentRequestSchema } from "#gen/service/v1/environment_service_pb.js";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import {
  CreateProjectFromEnvironmentRequestSchema,
  CreateProjectRequestSchema,
  CreateProjectsRequestSchema,
  ListProjectsRequestSchema,
  UpdateProjectRequestSchema,
  UpdateProjectsRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { CreateHostAuthenticationTokenRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { StartWorkflowRequestSchema, UpdateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";

/** One limit of the specification, with values on both sides of it. */
export interface Limit {
  /** JSON path at which a violation is told. */
  readonly at: string;
  readonly schema: DescMessage;
  /** A request that is valid but for the value. */
  readonly request: (value: JsonValue) => JsonObject;
  readonly passes: readonly JsonValue[];
  readonly fails: readonly JsonValue[];
  /** What the specification quotes: the opening of the error's message. */
  readonly quoted?: string;
}

export const ID = "0191f7a0-5c3e-7d1a-8b2f-000000000001";
/** One character, two units of UTF-16, four bytes of UTF-8. */
export const OUTSIDE_BMP = "😀";

const PATH = "path must not be absolute (start with a /)";
const TIMEOUT = "value must be 0s (no limit) or at least 1800s (30 minutes)";
const WHOLE_DAYS = "value must be a whole number of days";
const NAME = "name must be between 1 and 80 characters";
const DESCRIPTION = "description must be at most 500 characters";
const TRIGGERS = "a workflow can have at most 10 triggers";
const STEPS = "a workflow must have between 1 and 50 steps";
const PARALLEL = "maximum parallel actions must be between 1 and 25";
const TOTAL = "maximum total actions must be between 1 and 1000";
const PROMPT = "agent prompt must be between 1 and 20,000 characters";

/** Every message that the Errors part of the specification quotes. */
export const QUOTED = [
  PATH,
  TIMEOUT,
  WHOLE_DAYS,
  NAME,
  DESCRIPTION,
  TRIGGERS,
  STEPS,
  PARALLEL,
  TOTAL,
  PROMPT,
];

/** Texts of so many characters, of one byte each and of four. */
const texts = (...lengths: number[]) =>
  lengths.flatMap((length) => ["x".repeat(length), OUTSIDE_BMP.repeat(length)]);
const lists = (element: JsonValue, ...lengths: number[]) =>
  lengths.map((length) => Array<JsonValue>(length).fill(element));
const pairs = (...lengths: number[]) =>
  lengths.map((length) => Object.fromEntries(Array.from({ length }, (_, index) => [`key_${index}`, "value"])));
const images = (...lengths: number[]) => lengths.map((length) => Buffer.alloc(length).toString("base64"));

const list = (filter: JsonObject) => ({ filter });
const create = (more: JsonObject) => ({ initializer: { specs: [] }, ...more });
const update = (more: JsonObject) => ({ projectId: ID, ...more });
const policies = (more: JsonObject) => ({ organizationId: ID, ...more });
const workflow = (more: JsonObject) => ({ workflowId: ID, ...more });
const step: JsonValue = { task: { command: "true" } };
const limits: JsonObject = { maxParallel: 1, maxTotal: 1000 };
const action = (more: JsonObject): JsonObject => ({ limits, steps: [step], ...more });
const trigger = (context: JsonObject): JsonObject => ({ manual: {}, context });
const send = (userInput: JsonObject) => ({ agentExecutionId: ID, userInput });
const text: JsonValue = { text: { content: "x" } };
const image = (more: JsonObject) => send({ inputs: [{ image: { mimeType: "image/png", ...more } }] });
const token = (more: JsonObject) => ({ runnerId: ID, host: "h", token: "t", ...more });

const LP = ListProjectsRequestSchema;
const CP = CreateProjectRequestSchema;
const UP = UpdateProjectRequestSchema;
const CE = CreateEnvironmentRequestSchema;
const OP = UpdateOrganizationPoliciesRequestSchema;
const UW = UpdateWorkflowRequestSchema;
const SW = StartWorkflowRequestSchema;
const SA = StartAgentRequestSchema;
const TO = SendToAgentExecutionRequestSchema;

type Row = [string, DescMessage, Limit["request"], readonly JsonValue[], readonly JsonValue[], string?];

// The Limits part of the specification, in its order; numbers are written out
// here and nowhere derived. What it says of answers (the page size that 0
// stands for, a count's cap, the subjects that used a project) is no rule of
// the contract and tested where it happens.
const ROWS: readonly Row[] = [
  ["pagination.pageSize", LP, (v) => ({ pagination: { pageSize: v } }), [0, 1, 99, 100], [-1, 101]],
  ["filter.projectIds", LP, (v) => list({ projectIds: v }), lists(ID, 24, 25), [...lists(ID, 26), ["x"]]],
  ["filter.runnerIds", LP, (v) => list({ runnerIds: v }), lists(ID, 24, 25), [...lists(ID, 26), ["x"]]],
  ["filter.runnerKinds", LP, (v) => list({ runnerKinds: v }), lists(2, 24, 25), [...lists(2, 26), [99]]],
  ["filter.creatorIds", LP, (v) => list({ creatorIds: v }), lists(ID, 24, 25), [...lists(ID, 26), ["x"]]],
  [
    "filter.specRemoteUris",
    LP,
    (v) => list({ specRemoteUris: v }),
    lists("https://git.example.com/a/b.git", 24, 25),
    [...lists("https://git.example.com/a/b.git", 26), ["no URI"]],
  ],
  ["filter.search", LP, (v) => list({ search: v }), texts(0, 1, 255, 256), texts(257)],
  ["projects", CreateProjectsRequestSchema, (v) => ({ projects: v }), lists({}, 1, 99, 100), lists({}, 0, 101)],
  ["projects", UpdateProjectsRequestSchema, (v) => ({ projects: v }), lists({}, 1, 99, 100), lists({}, 0, 101)],
  ["name", CP, (v) => create({ name: v }), texts(1, 79, 80), texts(0, 81), NAME],
  ["name", UP, (v) => update({ name: v }), texts(1, 79, 80), texts(0, 81), NAME],
  [
    "name",
    CreateProjectFromEnvironmentRequestSchema,
    (v) => ({ environmentId: ID, name: v }),
    texts(1, 79, 80),
    texts(0, 81),
    NAME,
  ],
  ["technicalDescription", CP, (v) => create({ technicalDescription: v }), texts(0, 8191, 8192), texts(8193)],
  ["technicalDescription", UP, (v) => update({ technicalDescription: v }), texts(0, 8191, 8192), texts(8193)],
  ...[
    ["devcontainerFilePath", CP, (v: JsonValue) => create({ devcontainerFilePath: v })] as const,
    ["automationsFilePath", CP, (v: JsonValue) => create({ automationsFilePath: v })] as const,
    ["devcontainerFilePath", UP, (v: JsonValue) => update({ devcontainerFilePath: v })] as const,
    ["automationsFilePath", UP, (v: JsonValue) => update({ automationsFilePath: v })] as const,
    [
      "spec.devcontainer.devcontainerFilePath",
      CE,
      (v: JsonValue) => ({ spec: { devcontainer: { devcontainerFilePath: v } } }),
    ] as const,
    [
      "spec.automationsFile.automationsFilePath",
      CE,
      (v: JsonValue) => ({ spec: { automationsFile: { automationsFilePath: v } } }),
    ] as const,
  ].map(
    ([at, schema, request]): Row => [at, schema, request, ["", "a", ".a/b.json", "a/b/"], ["/", "/a", "//"], PATH],
  ),
  ...[
    [CP, create] as const, //
    [UP, update] as const,
  ].map(
    ([schema, around]): Row => [
      "prebuildConfiguration.timeout",
      schema,
      (v) => around({ prebuildConfiguration: { timeout: v } }),
      ["300s", "301s", "7199s", "7200s"],
      ["0s", "299s", "299.999999999s", "7200.000000001s", "7201s"],
    ],
  ),
  [
    "reason",
    BlockAccountRequestSchema,
    (v) => ({ accountId: ID, reason: v }),
    texts(1, 1023, 1024),
    texts(0, 1025),
  ],
  [
    "maximumEnvironmentTimeout",
    OP,
    (v) => policies({ maximumEnvironmentTimeout: v }),
    ["0s", "1800s", "1801s"],
    ["-1s", "0.000000001s", "1s", "1799s", "1799.999999999s"],
    TIMEOUT,
  ],
  [
    "deleteArchivedEnvironmentsAfter",
    OP,
    (v) => policies({ deleteArchivedEnvironmentsAfter: v }),
    ["0s", "2419199s", "2419200s"],
    ["-1s", "2419200.000000001s", "2419201s"],
  ],
  [
    "maximumEnvironmentLifetime",
    OP,
    (v) => policies({ maximumEnvironmentLifetime: v }),
    ["0s", "15551999s", "15552000s"],
    ["-1s", "15552000.000000001s", "15552001s"],
  ],
  [
    "archiveEnvironmentsAfter",
    OP,
    (v) => policies({ archiveEnvironmentsAfter: v }),
    ["86400s", "172800s", "2505600s", "2592000s"],
    ["0s", "2678400s"],
  ],
  [
    "archiveEnvironmentsAfter",
    OP,
    (v) => policies({ archiveEnvironmentsAfter: v }),
    ["86400s"],
    ["86399s", "86400.5s", "86401s", "2591999s", "2592001s"],
    WHOLE_DAYS,
  ],
  [
    "agentPolicy.maxSubagentsPerEnvironment",
    OP,
    (v) => policies({ agentPolicy: { maxSubagentsPerEnvironment: v } }),
    [0, 1, 9, 10],
    [-1, 11],
  ],
  ["name", UW, (v) => workflow({ name: v }), texts(1, 79, 80), texts(0, 81), NAME],
  ["description", UW, (v) => workflow({ description: v }), texts(0, 499, 500), texts(501), DESCRIPTION],
  [
    "triggers",
    UW,
    (v) => workflow({ triggers: v }),
    lists(trigger({ fromTrigger: {} }), 0, 9, 10),
    lists(trigger({ fromTrigger: {} }), 11),
    TRIGGERS,
  ],
  ...["action", "report"].flatMap((at): Row[] => [
    [
      `${at}.steps`,
      UW,
      (v) => workflow({ [at]: action({ steps: v }) }),
      lists(step, 1, 49, 50),
      lists(step, 0, 51),
      STEPS,
    ],
    [
      `${at}.limits.maxParallel`,
      UW,
      (v) => workflow({ [at]: action({ limits: { ...limits, maxParallel: v } }) }),
      [1, 24, 25],
      [-1, 0, 26],
      PARALLEL,
    ],
    [
      `${at}.limits.maxTotal`,
      UW,
      (v) => workflow({ [at]: action({ limits: { ...limits, maxTotal: v } }) }),
      [1, 999, 1000],
      [-1, 0, 1001],
      TOTAL,
    ],
  ]),
  [
    "contextOverride.agent.prompt",
    SW,
    (v) => workflow({ contextOverride: { agent: { prompt: v } } }),
    texts(1, 19_999, 20_000),
    texts(0, 20_001),
    PROMPT,
  ],
  [
    "triggers[0].context.agent.prompt",
    UW,
    (v) => workflow({ triggers: [trigger({ agent: { prompt: v } })] }),
    texts(1, 19_999, 20_000),
    texts(0, 20_001),
    PROMPT,
  ],
  [
    "contextOverride.projects.projectIds",
    SW,
    (v) => workflow({ contextOverride: { projects: { projectIds: v } } }),
    lists(ID, 0, 999, 1000),
    [...lists(ID, 1001), ["x"]],
  ],
  ["parameters", SW, (v) => workflow({ parameters: v }), pairs(0, 9, 10), pairs(11)],
  [
    "parameters",
    SW,
    (v) => workflow({ parameters: { [String(v)]: "value" } }),
    ["a", "_", "Z9", "snake_case_1"],
    ["", "1a", "a-b", "a.b", " a", "a ", "a\n", "ä"],
  ],
  [
    "scopes",
    CreateHostAuthenticationTokenRequestSchema,
    (v) => token({ scopes: v }),
    lists("s", 100, 101),
    lists("s", 102),
  ],
  ["name", SA, (v) => ({ name: v }), texts(0, 99, 100), texts(101)],
  ["userInput.inputs", TO, (v) => send({ inputs: v }), lists(text, 1, 9, 10), lists(text, 11)],
  ["userInput.inputs[0].image.data", TO, (v) => image({ data: v }), images(1, 4_194_304), images(0, 4_194_305)],
  [
    "userInput.inputs[0].image.mimeType",
    TO,
    (v) => image({ data: "AA==", mimeType: v }),
    ["image/png", "image/jpeg"],
    ["", "image/gif", "IMAGE/PNG"],
  ],
  ["turnOptions.modes", SA, (v) => ({ turnOptions: { modes: v } }), lists(1, 0, 3, 4), [...lists(1, 5), [99]]],
  [
    "userInput.metadata.modes",
    TO,
    (v) => send({ inputs: [text], metadata: { modes: v } }),
    lists(1, 0, 3, 4),
    [...lists(1, 5), [99]],
  ],
];

/** The table of the specification's limits. */
export const LIMITS: readonly Limit[] = ROWS.map(([at, schema, request, passes, fails, quoted]) => ({
  at,
  schema,
  request,
  passes,
  fails,
  ...(quoted !== undefined && { quoted }),
}));
