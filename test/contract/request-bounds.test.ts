import {
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  type JsonObject,
  toBinary,
} from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { max_body_bytes as maxBodyBytes } from "#gen/runner/v1/options_pb.js";
import { SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import {
  CreateProjectRequestSchema,
  CreateProjectsRequestSchema,
  GetProjectResponseSchema,
  UpdateProjectRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { createCheck } from "../../src/rpc/check.ts";
import { MAX_BODY_BYTES, MAX_PARTS, requestBounds } from "../../src/rpc/request/request-bounds.ts";
import { requestReading } from "../../src/rpc/request/request-reading.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { asciiJsonBytes, jsonBytes } from "./json-bytes.ts";
import { largest } from "./largest-request.ts";
import { ID } from "./limit.ts";

const check = createCheck();

/** The white space that a body written for people may have on top. */
const INDENTATION_BYTES = 64 * 1024;

function expectValid(schema: DescMessage, request: JsonObject): void {
  expect(() => check(schema, fromJson(schema, request))).not.toThrow();
}

const methods = CONTRACT.flatMap((service) =>
  service.methods.map((method) => [method.input.name, method] as const),
);

/** The bound that a request states for its whole body; 0 for none. */
function statedBytes({ input }: DescMethod): number {
  return getOption(input, maxBodyBytes);
}

const statesBytes = ([, method]: (typeof methods)[number]) => statedBytes(method) > 0;

/** The largest request that was made last: it is megabytes, and several tests after each other are about the same. */
let last: { readonly schema: DescMessage; readonly request: ReturnType<typeof largest> } | undefined;

function largestOnce(schema: DescMessage): ReturnType<typeof largest> {
  if (last?.schema !== schema) last = { schema, request: largest(schema) };
  return last.request;
}

/** Requests of which most are texts that are ASCII by their rules: mail domains, URIs. The bound counts any characters. */
const OF_ASCII = new Set([
  "UpdateOrganizationRequest",
  "ParseContextURLRequest",
  "CheckRepositoryAccessRequest",
]);

/** Requests of 200 requests, each of which may be megabytes: the largest would not fit into the memory of a test. */
const OF_REQUESTS = new Set(["PreviewChangesRequest", "ApplyChangesRequest"]);

const stating = methods.filter(statesBytes);
const computed = methods.filter((each) => !statesBytes(each) && !OF_REQUESTS.has(each[0]));

test.each(methods.filter(([name]) => OF_REQUESTS.has(name)))(
  "%s has the bounds of any request",
  (_, { input }) => {
    const { bytes, parts, records } = requestBounds(input);
    expect([bytes, parts, records]).toEqual([MAX_BODY_BYTES, MAX_PARTS, MAX_PARTS]);
  },
);

test.each(stating)("%s may be as large as it states", (_, method) => {
  expect(requestBounds(method.input).bytes).toBe(statedBytes(method));
});

describe.each(computed)("the largest %s", (_, method) => {
  const { input } = method;

  test("is no larger than a request may be, which is not 2.5 times as large in ASCII", () => {
    const { bytes } = requestBounds(input);
    const most = asciiJsonBytes(largestOnce(input));
    if (bytes === MAX_BODY_BYTES) {
      expect(2.5 * most + INDENTATION_BYTES).toBeGreaterThanOrEqual(bytes);
    } else {
      expect(bytes).toBeGreaterThanOrEqual(most);
      const factor = OF_ASCII.has(input.name) ? 12 : 2.5;
      expect(bytes).toBeLessThanOrEqual(factor * most + INDENTATION_BYTES);
    }
  });

  test("is valid, and passes the count of its parts in JSON and in binary where it may come whole", () => {
    const request = largestOnce(input) as JsonObject;
    expectValid(input, request);
    if (jsonBytes(request) >= MAX_BODY_BYTES) return;
    const reading = requestReading(method, false);
    const json = JSON.stringify(request);
    reading.count(false, Buffer.from(json));
    reading.count(true, toBinary(input, fromJson(input, JSON.parse(json))));
  });
});

describe("the bounds of a request", () => {
  test("only images for an agent may be more than 16 MiB", () => {
    const larger = CONTRACT.flatMap(({ methods }) =>
      methods.filter(({ input }) => requestBounds(input).bytes > 16 * 1024 * 1024).map(({ name }) => name),
    );
    expect(larger).toEqual(["StartAgent", "ForkAgentExecution", "SendToAgentExecution"]);
  });

  test.each([CreateProjectRequestSchema, UpdateProjectRequestSchema])(
    "the largest $name is valid as an element of a batch too",
    (element) => expectValid(element, largest(element) as JsonObject),
  );

  test("ProjectService takes 100 projects with every field at its bound in four-byte characters", () => {
    const project = largestProject();
    expectValid(CreateProjectRequestSchema, project);
    const request = { projects: Array<JsonObject>(100).fill(project) };
    expectValid(CreateProjectsRequestSchema, request);
    const bytes = Buffer.byteLength(JSON.stringify(request));
    expect(bytes).toBeGreaterThan(100 * 8192 * 4);
    expect(bytes).toBe(jsonBytes(request));
    expect(requestBounds(CreateProjectsRequestSchema).bytes).toBe(MAX_BODY_BYTES);
  });

  test("AgentService takes ten images of 4 MiB in base64", () => {
    const data = Buffer.alloc(4 * 1024 * 1024, 0xff).toString("base64");
    const input = { image: { data, mimeType: "image/jpeg", dataRef: "" } };
    const request = {
      agentExecutionId: ID,
      userInput: { id: "😀".repeat(128), inputs: Array<JsonObject>(10).fill(input) },
    };
    expectValid(SendToAgentExecutionRequestSchema, request);
    const { bytes } = requestBounds(SendToAgentExecutionRequestSchema);
    expect(bytes).toBeGreaterThanOrEqual(Buffer.byteLength(JSON.stringify(request)));
  });

  test("cannot be given for a message with a field without a bound, and the error names the field", () => {
    expect(() => requestBounds(GetProjectResponseSchema)).toThrow(
      /field service\.v1\.\S+ has no upper bound/,
    );
  });
});

/** Written out by hand from the specification and the comments of the contract. */
function largestProject(): JsonObject {
  const text = (characters: number) => "😀".repeat(characters);
  const git = {
    remoteUri: `a://${text(2044)}`,
    upstreamRemoteUri: text(2048),
    targetMode: "CLONE_TARGET_MODE_REMOTE_BRANCH",
    cloneTarget: text(255),
    checkoutLocation: text(1024),
    depth: 1_000_000,
  };
  const annotations = Array.from({ length: 32 }, (_, index) => [
    `${text(127)}${String.fromCodePoint(0x1f680 + index)}`,
    text(512),
  ]);
  return {
    name: text(80),
    initializer: { specs: Array<JsonObject>(10).fill({ git }) },
    devcontainerFilePath: text(1024),
    automationsFilePath: text(1024),
    technicalDescription: text(8192),
    prebuildConfiguration: {
      enabled: true,
      environmentClassIds: Array<string>(30).fill(ID),
      timeout: "7199.999999999s",
      trigger: { dailySchedule: { hourUtc: 23 } },
      executor: { id: ID, principal: "PRINCIPAL_SERVICE_ACCOUNT" },
      enableIdeWarmup: false,
    },
    annotations: Object.fromEntries(annotations),
  };
}
