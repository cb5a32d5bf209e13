import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { insertEnvironmentToken, insertServiceAccountToken } from "../harness/machine-token.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { runCommand, startServer, stopAll, type TestServer } from "../harness/server.ts";
import { bearer } from "./speak/connect.ts";

let server: TestServer;
let organizationId: string;
let ownAccountId: string;
beforeAll(async () => {
  server = await startServer();
  const { account } = (await post(server, "AccountService/GetAccount")).body;
  organizationId = account.organizationId;
  ownAccountId = account.id;
});
afterAll(stopAll);

let people = 0;
/** A new person who is a member of the first organization. */
function join(administrator = false): Promise<TestMember> {
  people += 1;
  return addMember(server, { organizationId, email: `person${people}@example.org`, administrator });
}

const block = (accountId: string, reason = "left the team", token?: string) =>
  post(server, "AccountService/BlockAccount", { accountId, reason }, token);
const unblock = (accountId: string, token?: string) =>
  post(server, "AccountService/UnblockAccount", { accountId }, token);
const whoAmI = (token: string) => post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);
/** Runs it as a program: each command once. */
const program = (...args: string[]) => runCommand([...args, "--data-dir", server.dataDir]);
const outcome = (answer: Answer) => [answer.status, reasonOf(answer)];

const BLOCKED = [403, "ACCOUNT_BLOCKED"];

function reasons(accountId: string, organization: string | null): Promise<string[]> {
  return withServerData(server, async ({ reader }) => {
    const rows = await builderOf(reader)
      .selectFrom("audit_log")
      .select(["reason", "organization_id"])
      .where("subject_id", "=", accountId)
      .where("operation", "=", "service.v1.AccountService/BlockAccount")
      .orderBy("sequence")
      .execute();
    return rows.filter((row) => row.organization_id === organization).map(({ reason }) => reason);
  });
}

describe("a blocked account", () => {
  let person: TestMember;
  let environmentId: string;
  let environmentToken: string;
  let serviceAccountToken: { id: string; value: string };
  let receipt: Answer["body"];
  beforeAll(async () => {
    person = await join();
    const made = await post(server, "EnvironmentService/CreateEnvironment", { name: "e" }, person.token);
    environmentId = made.body.environment.id;
    await post(server, "EnvironmentService/StartEnvironment", { environmentId }, person.token);
    await withServerData(server, async (store, keys) => {
      environmentToken = (await insertEnvironmentToken(store, keys, { organizationId, environmentId })).value;
      const of = { organizationId, creatorAccountId: person.accountId, description: "nightly" };
      serviceAccountToken = await insertServiceAccountToken(store, keys, of);
    });
    const added = await program("subscription", "add", "--account", person.accountId, "--name", "large");
    expect([added.code, added.stderr]).toEqual([0, ""]);
    for (const token of [person.token, environmentToken, serviceAccountToken.value]) {
      expect((await whoAmI(token)).status).toBe(200);
    }
    const answer = await block(person.accountId);
    expect(answer.status).toBe(200);
    receipt = answer.body;
  });

  test("leaves a receipt of what was cut off", () => {
    expect(receipt).toMatchObject({
      environmentsStopped: 1,
      subscriptionsCancelled: 1,
      disabledServiceAccountTokens: [{ id: serviceAccountToken.id, description: "nightly" }],
    });
    expect(JSON.stringify(receipt)).not.toContain("cr_sat_");
  });

  test("is refused with its own tokens, at every operation and before the body is read", async () => {
    expect(outcome(await whoAmI(person.token))).toEqual(BLOCKED);
    for (const operation of ["ProjectService/CreateProject", "AgentService/StartAgent", "No/Such"]) {
      const answer = await post(server, operation, "no JSON", person.token);
      expect(outcome(answer)).toEqual(BLOCKED);
      expect(answer.body.code).toBe("permission_denied");
    }
  });

  test("is refused over gRPC as well", async () => {
    const transport = createGrpcTransport({ baseUrl: server.url, interceptors: [bearer(person.token)] });
    const error = ConnectError.from(
      await createClient(ProjectService, transport)
        .listProjects({})
        .catch((thrown) => thrown),
    );
    expect(error.code).toBe(Code.PermissionDenied);
    expect(error.findDetails(ErrorDetailSchema)[0]?.reason).toBe(ErrorReason.ACCOUNT_BLOCKED);
  });

  test("is refused with the token of its environment", async () => {
    expect(outcome(await whoAmI(environmentToken))).toEqual(BLOCKED);
  });

  test("has no service account token that still works", async () => {
    expect(outcome(await whoAmI(serviceAccountToken.value))).toEqual([401, "UNAUTHENTICATED"]);
  });

  test("has its environment stopped", async () => {
    const { environment } = (await post(server, "EnvironmentService/GetEnvironment", { environmentId })).body;
    expect(environment.spec).toMatchObject({
      desiredPhase: "ENVIRONMENT_PHASE_STOPPED",
      specVersion: "2",
    });
  });

  test("is blocked again with the same receipt, and the new reason is recorded", async () => {
    expect((await block(person.accountId, "found more")).body).toEqual(receipt);
    expect(await reasons(person.accountId, organizationId)).toEqual(["left the team", "found more"]);
    expect(await reasons(person.accountId, null)).toEqual(["left the team", "found more"]);
  });

  test("stays blocked when the server was killed and started again", async () => {
    await server.kill();
    const { token } = server;
    server = { ...(await startServer({ dataDir: server.dataDir })), token };
    expect(outcome(await whoAmI(person.token))).toEqual(BLOCKED);
    expect((await block(person.accountId, "once more")).body).toEqual(receipt);
  });

  test("gets its access back when it is unblocked, and nothing else", async () => {
    expect((await unblock(person.accountId)).body).toEqual({});
    expect((await whoAmI(person.token)).status).toBe(200);
    expect((await whoAmI(environmentToken)).status).toBe(200);
    expect((await whoAmI(serviceAccountToken.value)).status).toBe(401);
    const { environment } = (await post(server, "EnvironmentService/GetEnvironment", { environmentId })).body;
    expect(environment.spec.desiredPhase).toBe("ENVIRONMENT_PHASE_STOPPED");
    expect((await unblock(person.accountId)).body).toEqual({});
  });

  test("has another receipt when it is blocked again", async () => {
    expect((await block(person.accountId)).body).toEqual({
      environmentsStopped: 1,
      subscriptionsCancelled: 0,
      disabledServiceAccountTokens: [],
    });
  });
});

describe("service account tokens of a blocked administrator", () => {
  test("are disabled with those that were made with them, also while they are used", async () => {
    const creator = await join(true);
    const made = await post(
      server,
      "ServiceAccountService/CreateServiceAccount",
      { name: "Nightly", validUntil: "2999-12-31T00:00:00Z" },
      creator.token,
    );
    const serviceAccountId = made.body.serviceAccount.id;
    const newToken = async (token: string) => {
      const operation = "ServiceAccountService/CreateServiceAccountToken";
      return (await post(server, operation, { serviceAccountId }, token)).body;
    };
    const first = await newToken(creator.token);
    const second = await newToken(first.token);
    const kept = await newToken(server.token);
    const { disabledServiceAccountTokens } = (await block(creator.accountId)).body;
    const disabled = disabledServiceAccountTokens.map(({ id }: { id: string }) => id);
    expect(disabled).toEqual([first.serviceAccountToken.id, second.serviceAccountToken.id]);
    for (const { token } of [first, second]) {
      expect(outcome(await whoAmI(token))).toEqual([401, "UNAUTHENTICATED"]);
    }
    expect((await whoAmI(kept.token)).status).toBe(200);
  });
});

describe("who may block an account", () => {
  test("not a member", async () => {
    const [member, other] = [await join(), await join()];
    for (const call of [
      block(other.accountId, "envy", member.token),
      unblock(other.accountId, member.token),
    ]) {
      const answer = await call;
      expect(outcome(answer)).toEqual([403, "PERMISSION_DENIED"]);
      expect(answer.body.details[0].debug.metadata).toEqual({ permission: "block_account" });
    }
    expect((await whoAmI(other.token)).status).toBe(200);
  });

  test("not an environment, even of an administrator", async () => {
    const made = await post(server, "EnvironmentService/CreateEnvironment", { name: "e" });
    const environmentId = made.body.environment.id;
    const { value } = await withServerData(server, (store, keys) =>
      insertEnvironmentToken(store, keys, { organizationId, environmentId }),
    );
    expect(outcome(await block((await join()).accountId, "odd", value))).toEqual([403, "PERMISSION_DENIED"]);
  });

  test("nobody the own account", async () => {
    expect(outcome(await block(ownAccountId))).toEqual([400, "OWN_ACCOUNT"]);
  });

  test("nobody an account of another organization only, which looks like one that is absent", async () => {
    const island = await addOrganization(server, "island");
    const foreign = await block(island.accountId);
    const absent = await block(v7());
    expect(outcome(foreign)).toEqual([404, "NOT_FOUND"]);
    expect([foreign.status, foreign.body]).toEqual([absent.status, absent.body]);
    expect((await unblock(island.accountId)).body).toEqual((await unblock(v7())).body);
    expect((await whoAmI(island.token)).status).toBe(200);
  });

  test("of an account in two organizations only who administers both", async () => {
    const lagoon = await addOrganization(server, "lagoon");
    const person = await join();
    const email = `person${people}@example.org`;
    const there = await addMember(server, { organizationId: lagoon.organizationId, email });
    for (const token of [server.token, lagoon.token]) {
      const answer = await block(person.accountId, "left", token);
      expect(outcome(answer)).toEqual([403, "PERMISSION_DENIED"]);
      expect(answer.body.details[0].debug.metadata).toEqual({ permission: "block_account" });
    }
    expect((await whoAmI(person.token)).status).toBe(200);
    const both = await join(true);
    await addMember(server, {
      organizationId: lagoon.organizationId,
      email: `person${people}@example.org`,
      administrator: true,
    });
    expect((await block(person.accountId, "left", both.token)).status).toBe(200);
    for (const token of [person.token, there.token]) expect(outcome(await whoAmI(token))).toEqual(BLOCKED);
    expect(await reasons(person.accountId, lagoon.organizationId)).toEqual(["left"]);
    expect(outcome(await unblock(person.accountId))).toEqual([403, "PERMISSION_DENIED"]);
  });
});
