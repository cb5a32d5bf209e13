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
