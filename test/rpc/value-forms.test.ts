import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
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
