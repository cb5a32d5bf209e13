import {
  type DescField,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import type { UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { describe, expect, test } from "@jest/globals";
import { SendToAgentExecutionRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import {
  CreateProjectsRequestSchema,
  ListProjectsRequestSchema,
  UpdateProjectRequestSchema,
} from "#gen/service/v1/project_service_pb.js";
import { CreateHostAuthenticationTokenRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import { lowerCaseIds } from "../../src/rpc/request/lower-case-ids.ts";
import { skipUnknownFields } from "../../src/rpc/request/request-reading.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { rulesOf } from "../../src/rpc/rules.ts";
import { type Reached, reachFrom } from "./reach.ts";

const UPPER = "0191F7A0-5C3E-7D1A-8B2F-00000000ABCD";
const LOWER = "0191f7a0-5c3e-7d1a-8b2f-00000000abcd";

/** A text reachable from a request, and the operation that takes it. */
interface Text extends Reached {
  readonly method: DescMethodUnary;
}

const methods = CONTRACT.flatMap((service) => service.methods) as DescMethodUnary[];
const texts: Text[] = methods.flatMap((method) =>
  reachFrom(method.input)
    .filter(({ field }) => field.scalar === ScalarType.STRING)
    .map((reached) => ({ ...reached, method })),
);

/** Texts that may be ids of another form, and are treated as ids where they are UUIDs. */
const FREE = [
  "ApplyChangesRequest.changes.updateOrganizationPolicies.agentPolicy.allowedAgentIds",
  "ApplyChangesRequest.changes.updateOrganizationPolicies.agentPolicy.scmToolsAllowedGroupId",
  "PreviewChangesRequest.changes.updateOrganizationPolicies.agentPolicy.allowedAgentIds",
  "PreviewChangesRequest.changes.updateOrganizationPolicies.agentPolicy.scmToolsAllowedGroupId",
  "PreviewOrganizationPoliciesRequest.change.agentPolicy.allowedAgentIds",
  "PreviewOrganizationPoliciesRequest.change.agentPolicy.scmToolsAllowedGroupId",
  "UpdateOrganizationPoliciesRequest.agentPolicy.allowedAgentIds",
  "UpdateOrganizationPoliciesRequest.agentPolicy.scmToolsAllowedGroupId",
];

/** Whether a text is an id; the rules are read again: a UUID, or nothing or a UUID. */
function isId({ field, path }: Reached): boolean {
  if (FREE.includes(path)) return true;
  const rules = rulesOf(field);
  const own = rules?.type.case === "repeated" ? rules.type.value.items : rules;
  if (own?.type.case !== "string") return false;
  const { wellKnown, pattern } = own.type.value;
  const takes = (value: string) => pattern !== "" && new RegExp(pattern).test(value);
  return wellKnown.case === "uuid" || (takes(LOWER) && takes("") && !takes("name"));
}

/** A request with one text in it, everything on the way to it made once. */
function requestWith(way: readonly DescField[], value: string): JsonObject {
  const [first, ...rest] = way;
  if (!first) throw new Error("a way has at least one field");
  const inner: JsonValue = rest.length > 0 ? requestWith(rest, value) : value;
  if (first.fieldKind === "list") return { [first.jsonName]: [inner, inner] };
  return { [first.jsonName]: first.fieldKind === "map" ? { KeY: inner } : inner };
}

/** What the operation would be given. */
async function passOn({ method }: Pick<Text, "method">, request: JsonObject): Promise<JsonValue> {
  let given: JsonValue = null;
  const next = async (req: { readonly message: unknown }) => {
    given = toJson(method.input, req.message as never);
    return {} as UnaryResponse;
  };
  const req = { stream: false, method, message: fromJson(method.input, request) } as unknown as UnaryRequest;
  await lowerCaseIds(next as Parameters<typeof lowerCaseIds>[0])(req);
  return given;
}

describe("ids at the edge", () => {
  const ids = texts.filter(isId);
  const others = texts.filter((text) => !isId(text));

  test("are found where they are known to be: alone, in lists, deep, in oneofs, and where they may be empty", () => {
    expect(ids.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        "GetProjectRequest.projectId",
        "ListProjectsRequest.filter.creatorIds",
        "CreateProjectsRequest.projects.prebuildConfiguration.environmentClassIds",
        "CreateProjectsRequest.projects.prebuildConfiguration.executor.id",
        "StartAgentRequest.codeContext.projectId",
        "StartAgentRequest.sessionId",
        "UpdateWorkflowRequest.agentId",
        "UpdateWorkflowRequest.triggers.context.projects.projectIds",
        "UpdateOrganizationPoliciesRequest.securityPolicyId",
        ...FREE,
      ]),
    );
    expect(others.length).toBeGreaterThan(100);
  });

  test.each(ids.map((id) => [id.path, id] as const))(
    "%s in upper case leaves in lower case",
    async (_, id) => {
      expect(await passOn(id, requestWith(id.way, UPPER))).toEqual(requestWith(id.way, LOWER));
    },
  );

  test("no other text changes, though it may look like an id", async () => {
    for (const text of others) {
      expect(await passOn(text, requestWith(text.way, UPPER))).toEqual(requestWith(text.way, UPPER));
    }
  });

  test.each(FREE)("%s keeps an id of another form as it is", async (path) => {
    const id = ids.find((each) => each.path === path) as Text;
    for (const value of ["Agent-A", `${UPPER}0`, `X${UPPER}`, UPPER.replaceAll("-", "")]) {
      expect(await passOn(id, requestWith(id.way, value))).toEqual(requestWith(id.way, value));
    }
  });

  test("several at once leave in lower case, and what is next to them stays", async () => {
    const method = methods.find(({ name }) => name === "CreateProjects") as DescMethodUnary;
    const project = (id: string) => ({
      name: "NaMe",
      initializer: { specs: [{ git: { remoteUri: "https://Git.Example.com/A" } }] },
      prebuildConfiguration: { environmentClassIds: [id, LOWER], executor: { id } },
      annotations: { KeY: UPPER },
    });
    const request = (id: string) => ({ projects: [project(id), { name: UPPER }, project(id)] });
    expect(await passOn({ method }, request(UPPER))).toEqual(request(LOWER));
  });
});

describe("unknown fields, where they are let through", () => {
  test("disappear at the top and inside messages, lists and maps", () => {
    const extra = { new: { projectId: LOWER } };
    const kept = skipUnknownFields(CreateProjectsRequestSchema, {
      ...extra,
      projects: [
        { name: "one", ...extra, prebuildConfiguration: { enabled: true, ...extra } },
        { ...extra, initializer: { specs: [{ git: { remoteUri: "a", ...extra }, ...extra }], ...extra } },
      ],
    });
    expect(kept).toEqual({
      projects: [
        { name: "one", prebuildConfiguration: { enabled: true } },
        { initializer: { specs: [{ git: { remoteUri: "a" } }] } },
      ],
    });
    expect(
      skipUnknownFields(UpdateProjectRequestSchema, {
        recommendedEditors: { editors: { new: { versions: ["1"], ...extra }, __proto__x: extra }, ...extra },
      }),
    ).toEqual({ recommendedEditors: { editors: { new: { versions: ["1"] }, __proto__x: {} } } });
  });

  test("are distinguished from known ones in both spellings", () => {
    const known = { project_id: LOWER, devcontainerFilePath: "a", automations_file_path: "b" };
    expect(
      skipUnknownFields(UpdateProjectRequestSchema, { ...known, ProjectId: "x", projectid: "y" }),
    ).toEqual(known);
  });

  test("are not keys of maps, whatever these are called", () => {
    const annotations = JSON.parse('{"unknown": "a", "__proto__": "b", "constructor": "c"}');
    const kept = skipUnknownFields(ListProjectsRequestSchema, { filter: { annotations } });
    expect(JSON.stringify(kept)).toBe(JSON.stringify({ filter: { annotations } }));
    const editors = JSON.parse('{"__proto__": {"versions": [], "new": 1}}');
    const policies = skipUnknownFields(UpdateProjectRequestSchema, { recommendedEditors: { editors } });
    expect(JSON.stringify(policies)).toBe('{"recommendedEditors":{"editors":{"__proto__":{"versions":[]}}}}');
  });

  test("do not include names of the language's own that no field has", () => {
    const request = JSON.parse('{"__proto__": {"a": 1}, "constructor": 1, "toString": 2, "filter": {}}');
    expect(JSON.stringify(skipUnknownFields(ListProjectsRequestSchema, request))).toBe('{"filter":{}}');
  });

  test("do not include unknown members of enums, which stay and are refused", () => {
    const request = {
      filter: { runnerKinds: ["RUNNER_KIND_REMOTE", "RUNNER_KIND_NEW"] },
      sort: { order: "SORT_ORDER_NEW" },
    };
    const kept = skipUnknownFields(ListProjectsRequestSchema, request) as JsonObject;
    expect(kept).toEqual(request);
    expect(() => fromJson(ListProjectsRequestSchema, kept)).toThrow("RUNNER_KIND_NEW");
    const modelStates = { EXT_AGENT_MODEL_1: "EXT_AGENT_MODEL_POLICY_STATE_NEW" };
    const policies = { agentPolicy: { extAgentModelPolicy: { modelStates } } };
    expect(skipUnknownFields(UpdateOrganizationPoliciesRequestSchema, policies)).toEqual(policies);
  });

  test("do not reach into well-known types, which have a form of their own", () => {
    const request = { runnerId: LOWER, expiresAt: "2026-01-02T03:04:05Z", new: 1 };
    expect(skipUnknownFields(CreateHostAuthenticationTokenRequestSchema, request)).toEqual({
      runnerId: LOWER,
      expiresAt: "2026-01-02T03:04:05Z",
    });
    const wrong = { expiresAt: { seconds: 1, new: 2 } };
    expect(skipUnknownFields(CreateHostAuthenticationTokenRequestSchema, wrong)).toEqual(wrong);
  });

  test.each([
    ["a text", "x"],
    ["a number", 1],
    ["null", null],
    ["a list", [{ new: 1 }]],
  ])("leave what is no message as it is, for the parser to judge: %s", (_, value) => {
    expect(skipUnknownFields(SendToAgentExecutionRequestSchema, value)).toEqual(value);
    for (const name of ["userInput", "turnOptions"]) {
      const request = { [name]: value };
      expect(skipUnknownFields(SendToAgentExecutionRequestSchema, request)).toEqual(request);
    }
    const lists = { userInput: { inputs: value } };
    const kept = skipUnknownFields(SendToAgentExecutionRequestSchema, lists);
    expect(kept).toEqual(Array.isArray(value) ? { userInput: { inputs: [{}] } } : lists);
  });
});
