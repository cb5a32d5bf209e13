import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { UpdateOrganizationPoliciesRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import {
  type CreateProjectRequestSchema,
  CreateProjectsRequestSchema,
  CreateProjectsResponseSchema,
} from "#gen/service/v1/project_service_pb.js";
import { post, repository } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const createProject = (timeout: string) =>
  post(server, "ProjectService/CreateProject", {
    initializer: repository("https://git.example.org/team/hello.git"),
    prebuildConfiguration: { timeout },
  });

describe("a duration", () => {
  test.each(["3600s and a half", "1800sx", "1800s ", "600.0000000001s"])(
    "of '%s' is refused",
    async (timeout) => {
      const answer = await createProject(timeout);
      expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
      expect(answer.body.message).toBe(
        "cannot decode field service.v1.ProjectPrebuildConfiguration.timeout from JSON: " +
          "expected seconds with at most nine decimals and an s, such as 3600s",
      );
    },
  );

  test("of whole seconds is taken", async () => {
    expect((await createProject("1800s")).body.project.prebuildConfiguration.timeout).toBe("1800s");
  });

  test("is refused in an organization's policies too", async () => {
    const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
    const answer = await post(server, "OrganizationService/UpdateOrganizationPolicies", {
      organizationId: body.organizationId,
      maximumEnvironmentTimeout: "1800sx",
    });
    expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
  });
});

describe("a timestamp", () => {
  const createToken = (expiresAt: string) =>
    post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", { expiresAt });

  test.each(["2027-02-30T00:00:00Z", "2027-01-01T24:00:00Z", "2027-06-30T23:59:60Z"])(
    "of %s, which does not exist, is refused",
    async (expiresAt) => {
      const answer = await createToken(expiresAt);
      expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
      expect(answer.body.message).toMatch(
        /expiresAt from JSON: expected an existing instant of RFC 3339, such as/,
      );
    },
  );
});

describe("an integer", () => {
  const maximum = async (value: unknown) => {
    const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
    const { organizationId } = body;
    const update = `{"organizationId":"${organizationId}","maximumEnvironmentsPerUser":${value}}`;
    const answer = await post(server, "OrganizationService/UpdateOrganizationPolicies", update);
    const stored = await post(server, "OrganizationService/GetOrganizationPolicies", { organizationId });
    return { answer, stored: stored.body.policies.maximumEnvironmentsPerUser };
  };
  const FIELD = "cannot decode field service.v1.UpdateOrganizationPoliciesRequest.maximumEnvironmentsPerUser";

  test("of 64 bits is kept whole in quotes", async () => {
    for (const value of ["9007199254740993", "9223372036854775807"]) {
      const { answer, stored } = await maximum(`"${value}"`);
      expect([answer.status, stored]).toEqual([200, value]);
    }
  });

  test.each(['"0x10"', '" 7 "', '"0b11"', '"+5"', '""'])("of %s is refused", async (value) => {
    const { stored: before } = await maximum("5");
    const { answer, stored } = await maximum(value);
    expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
    expect(answer.body.message).toBe(`${FIELD} from JSON: expected decimal digits, such as 25`);
    expect(stored).toBe(before);
  });

  test("of 64 bits is refused as a number that would be rounded, and taken as one that would not", async () => {
    const { answer, stored } = await maximum("9007199254740993");
    expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
    expect(answer.body.message).toBe(
      `${FIELD} from JSON: expected decimal digits in quotes: as a JSON number, one past 9007199254740991 loses some`,
    );
    expect(stored).not.toBe("9007199254740992");
    expect((await maximum("9007199254740991")).stored).toBe("9007199254740991");
  });

  test("of 32 bits is no hexadecimal text either", async () => {
    const answer = await post(server, "ProjectService/ListProjects", { pagination: { pageSize: "0x10" } });
    expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
    expect(
      (await post(server, "ProjectService/ListProjects", { pagination: { pageSize: "16" } })).status,
    ).toBe(200);
  });
});

describe("a duration in binary", () => {
  const send = async (operation: string, body: Uint8Array) => {
    const res = await fetch(`${server.url}/api/service.v1.${operation}`, {
      method: "POST",
      headers: { "content-type": "application/proto", authorization: `Bearer ${server.token}` },
      body: body as BodyInit,
    });
    return { status: res.status, header: res.headers, body: await res.bytes() };
  };
  const refused = async (operation: string, body: Uint8Array) => {
    const { body: bytes, ...answer } = await send(operation, body);
    return { ...answer, body: JSON.parse(Buffer.from(bytes).toString()) };
  };
  const project = (seconds: bigint, nanos: number) => ({
    name: "in binary",
    initializer: {
      specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/a.git" } } }],
    },
    prebuildConfiguration: { timeout: { seconds, nanos } },
  });
  const update = (seconds: bigint, nanos: number, organizationId: string) =>
    toBinary(
      UpdateOrganizationPoliciesRequestSchema,
      create(UpdateOrganizationPoliciesRequestSchema, {
        organizationId,
        maximumEnvironmentLifetime: { seconds, nanos },
      }),
    );

  test.each([
    [1801n, -1],
    [1800n, 1_000_000_000],
    [0n, 1_999_999_999],
  ])("of %s s and %s ns is refused, since JSON has none like it", async (seconds, nanos) => {
    const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
    const request = update(seconds, nanos, body.organizationId);
    const answer = await refused("OrganizationService/UpdateOrganizationPolicies", request);
    expectError(answer, 400, "invalid_argument", "VALUE_UNUSABLE");
    expect(answer.body.message).toMatch(/^maximumEnvironmentLifetime is no duration: its nanos must be/);
    const valid = update(1800n, 999_999_999, body.organizationId);
    expect((await send("OrganizationService/UpdateOrganizationPolicies", valid)).status).toBe(200);
  });

  test("fails its own element alone", async () => {
    const request = create(CreateProjectsRequestSchema, {
      projects: [project(301n, -1), project(300n, 1)] as MessageInitShape<
        typeof CreateProjectRequestSchema
      >[],
    });
    const { status, body } = await send(
      "ProjectService/CreateProjects",
      toBinary(CreateProjectsRequestSchema, request),
    );
    expect(status).toBe(200);
    const { createdProjects, failedProjects } = fromBinary(CreateProjectsResponseSchema, body);
    expect(createdProjects).toHaveLength(1);
    expect(failedProjects).toMatchObject([
      { index: 0, error: expect.stringMatching(/^prebuildConfiguration\.timeout is no duration/) },
    ]);
  });
});
