import { type MessageShape, create as message, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import { post, repository } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";
import { callConnect, callGrpc, callGrpcWeb, envelope } from "./raw-call.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--allow-unknown-fields"] });
});
afterAll(stopAll);

const create = (body: unknown) => post(server, "ProjectService/CreateProject", body);
const initializer = repository("https://git.example.org/team/hello.git");

describe("a server that allows unknown fields", () => {
  test("skips them at any depth, whatever is in them", async () => {
    const answer = await create({
      initializer: {
        specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git", depth: 1 }, later: [] }],
        later: { deep: [{ deeper: null }] },
      },
      prebuildConfiguration: { trigger: { dailySchedule: { hourUtc: 3, minute: 30 } }, timeout: "600s" },
      annotations: { later: "is a key here, and stays" },
      later: true,
      __proto__: { name: "from nowhere" },
    });
    expect(answer.status).toBe(200);
    expect(answer.body.project).toMatchObject({
      metadata: { name: "hello", annotations: { later: "is a key here, and stays" } },
      prebuildConfiguration: { trigger: { dailySchedule: { hourUtc: 3 } }, timeout: "600s" },
    });
  });

  test("reads both spellings of the known ones, and every form of their values", async () => {
    const answer = await create({
      initializer,
      devcontainer_file_path: "a.json",
      prebuild_configuration: { enabled: true, timeout: "300s", executor: null },
      later: 1,
    });
    expect(answer.body.project).toMatchObject({
      devcontainerFilePath: "a.json",
      prebuildConfiguration: { enabled: true, timeout: "300s" },
    });
  });

  test("refuses unknown names of enums all the same", async () => {
    const executor = { principal: "PRINCIPAL_DOG" };
    const answer = await create({ initializer, later: 1, prebuildConfiguration: { executor } });
    expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
  });

  test("refuses unknown numbers of enums all the same", async () => {
    const answer = await create({
      initializer,
      later: 1,
      prebuildConfiguration: { executor: { principal: 99 } },
    });
    expectError(answer, 400, "invalid_argument", "CONSTRAINT_VIOLATED");
  });

  test.each(["{", "[]", "null", '"x"', '{"name":7,"later":1}', '{"initializer":[]}'])(
    "refuses what is no JSON of the request: %j",
    async (text) => {
      expectError(await create(text), 400, "invalid_argument", "BODY_MALFORMED");
    },
  );

  test.each([5_000, 15_000])("refuses or skips what is nested %d deep, and lives on", async (depth) => {
    const deep = `${'{"later":'.repeat(depth)}{}${"}".repeat(depth)}`;
    const list = "[".repeat(depth) + "]".repeat(depth);
    for (const body of [deep, `{"later":${list}}`, `{"initializer":{"specs":${list}}}`]) {
      const { status } = await create(body);
      expect([200, 400]).toContain(status);
    }
    expect((await create({ initializer })).status).toBe(200);
  });

  test("does not take a message of nothing but unknown fields for one that is to be cleared", async () => {
    const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ task: { command: "true" } }] };
    const made = await post(server, "WorkflowService/CreateWorkflow", { name: "x", action, report: action });
    const { workflow } = made.body;
    const update = (report: object) =>
      post(server, "WorkflowService/UpdateWorkflow", { workflowId: workflow.id, report, later: 1 });
    expectError(await update({ later: 1 }), 400, "invalid_argument", "CONSTRAINT_VIOLATED");
    expect((await update({})).body.workflow.spec).toEqual({ ...workflow.spec, report: undefined });
  });

  test("refuses bytes that are no UTF-8", async () => {
    const body = Buffer.concat([Buffer.from('{"later":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    expectError(await create(new Uint8Array(body)), 400, "invalid_argument", "BODY_MALFORMED");
  });
});

describe("UpdateOrganizationPolicies refuses unknown fields even there", () => {
  const operation = "OrganizationService/UpdateOrganizationPolicies";
  /** UpdateAgentPolicy has no field 8; a varint of 1 is its value. */
  const unknown = Uint8Array.of(8 << 3, 1);
  const request = async (): Promise<MessageShape<typeof UpdateOrganizationPoliciesRequestSchema>> => {
    const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
    return message(UpdateOrganizationPoliciesRequestSchema, {
      organizationId: body.organizationId,
      agentPolicy: { mcpDisabled: true },
    });
  };
  const isDisabled = async () => {
    const { organizationId } = await request();
    const { body } = await post(server, "OrganizationService/GetOrganizationPolicies", { organizationId });
    return body.policies.agentPolicy.mcpDisabled;
  };

  test("in JSON", async () => {
    const { organizationId } = await request();
    const nested = await post(server, operation, {
      organizationId,
      agentPolicy: { mcpDisabled: true, later: 1 },
    });
    expectError(nested, 400, "invalid_argument", "BODY_MALFORMED");
    expectError(
      await post(server, operation, { organizationId, later: 1 }),
      400,
      "invalid_argument",
      "BODY_MALFORMED",
    );
    expect(await isDisabled()).toBe(false);
  });

  test.each([
    ["Connect", callConnect, (body: Uint8Array) => body],
    ["gRPC", callGrpc, envelope],
    ["gRPC-Web", callGrpcWeb, envelope],
  ] as const)("in binary, over %s", async (_, call, framed) => {
    const nested = await request();
    const policy = nested.agentPolicy as { $unknown?: unknown };
    policy.$unknown = [{ no: 8, wireType: 0, data: unknown.subarray(1) }];
    const error = await call(
      server,
      operation,
      framed(toBinary(UpdateOrganizationPoliciesRequestSchema, nested)),
    );
    expect(error?.code).toBe(Code.InvalidArgument);
    expect(error?.rawMessage).toMatch(
      /^service.v1.UpdateOrganizationPoliciesRequest.UpdateAgentPolicy has no field number 8: /,
    );
    const top = toBinary(UpdateOrganizationPoliciesRequestSchema, await request());
    const newer = Buffer.concat([top, Buffer.of(0xfa, 0x7c, 0)]);
    expect((await call(server, operation, framed(newer)))?.rawMessage).toContain("no field number 1999");
    expect(await isDisabled()).toBe(false);
  });

  test("and takes a request without them", async () => {
    const body = toBinary(UpdateOrganizationPoliciesRequestSchema, await request());
    expect(await callConnect(server, operation, body)).toBeUndefined();
    expect(await isDisabled()).toBe(true);
  });
});
