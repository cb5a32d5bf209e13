import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v4, v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { insertEnvironmentToken } from "../harness/machine-token.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { watch } from "../harness/watch.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, reasonOf(answer)];

/** A new organization with calls as its administrator, or as another. */
async function newOrganization() {
  const name = `org-${v7()}`;
  const { organizationId, userId, token } = await addOrganization(server, name);
  return {
    ...{ name, organizationId, userId, token },
    call: (operation: string, body: object = {}, as = token) =>
      post(server, `OrganizationService/${operation}`, { organizationId, ...body }, as),
    user: (operation: string, body: object = {}, as = token) =>
      post(server, `UserService/${operation}`, body, as),
    join: (who: string, administrator = false): Promise<TestMember> =>
      addMember(server, { organizationId, email: `${who}@${name}.example`, administrator }),
    async invite(request: object = {}): Promise<string> {
      const { body } = await post(
        server,
        "OrganizationService/CreateOrganizationInvite",
        { organizationId, ...request },
        token,
      );
      return body.invite.inviteId;
    },
  };
}

const joinWith = (inviteId: string, token: string) =>
  post(server, "OrganizationService/JoinOrganization", { inviteId }, token);
const summaryOf = (inviteId: string, token: string) =>
  post(server, "OrganizationService/GetOrganizationInviteSummary", { inviteId }, token);

describe("an invite", () => {
  test("brings accounts of other organizations in, with its role, as often as it says", async () => {
    const [harbour, island] = [await newOrganization(), await newOrganization()];
    const inviteId = await harbour.invite({ maxUses: 2, role: "ORGANIZATION_ROLE_ADMIN" });
    expect(inviteId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]/);
    const people = await Promise.all(["ann", "ben", "cid"].map((who) => island.join(who)));
    expect((await summaryOf(inviteId, island.token)).body).toEqual({
      organizationId: harbour.organizationId,
      organizationName: harbour.name,
      organizationMemberCount: 1,
    });
    const answers = await Promise.all(people.map(({ token }) => joinWith(inviteId, token)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 404]);
    const joined = answers.filter(({ status }) => status === 200);
    expect(joined.map(({ body }) => body.member.role)).toEqual(Array(2).fill("ORGANIZATION_ROLE_ADMIN"));
    const { members } = (await harbour.call("ListMembers")).body;
    expect(members.map((each: { userId: string }) => each.userId)).toEqual(
      expect.arrayContaining(joined.map(({ body }) => body.member.userId)),
    );
    expect(members).toHaveLength(3);
    // The trail names who they are there, and not who they are elsewhere.
    const trail = await post(server, "EventService/ListAuditLogs", {}, harbour.token);
    const joins = trail.body.entries.filter((each: { action: string }) =>
      each.action.endsWith("/JoinOrganization"),
    );
    const twice = joined.flatMap(({ body }) => [body.member.userId, body.member.userId]);
    expect(joins.map((each: { actorId: string }) => each.actorId).toSorted()).toEqual(twice.toSorted());
    // Used up, it is as if it had never been.
    const absent = await summaryOf(v4(), island.token);
    expect(refusal(absent)).toEqual([404, "NOT_FOUND"]);
    expect((await summaryOf(inviteId, island.token)).body).toEqual(absent.body);
    expect(refusal(await harbour.call("GetOrganizationInvite"))).toEqual([404, "NOT_FOUND"]);
  });

  test("changes nothing for a member, and gives back the user that an account was", async () => {
    const [harbour, island] = [await newOrganization(), await newOrganization()];
    const { token } = await island.join("dan");
    const inviteId = await harbour.invite({ maxUses: 2 });
    const first = (await joinWith(inviteId, token)).body.member;
    expect(first.role).toBe("ORGANIZATION_ROLE_MEMBER");
    expect((await joinWith(inviteId, token)).body.member).toEqual(first);
    expect((await harbour.call("GetOrganizationInvite")).body.invite).toMatchObject({
      ...{ inviteId, uses: 1, maxUses: 2, role: "ORGANIZATION_ROLE_MEMBER" },
    });
    await harbour.call("RemoveMember", { userId: first.userId });
    expect((await joinWith(inviteId, token)).body.member.userId).toBe(first.userId);
  });

  test("is of no use once another was made, or its time is over", async () => {
    const [harbour, island] = [await newOrganization(), await newOrganization()];
    const [former, present] = [await harbour.invite(), await harbour.invite()];
    const unknown = await joinWith(v4(), island.token);
    expect((await joinWith(former, island.token)).body).toEqual(unknown.body);
    expect((await summaryOf(present, island.token)).status).toBe(200);
    await withServerData(server, (store) =>
      store.write({ id: "test", principal: 0 }, "test", ({ db, now }) =>
        builderOf(db)
          .updateTable("organization_invite")
          .set({ expires_at: now })
          .where("organization_id", "=", harbour.organizationId)
          .execute(),
      ),
    );
    for (const answer of [await joinWith(present, island.token), await summaryOf(present, island.token)]) {
      expect([answer.status, answer.body]).toEqual([404, unknown.body]);
    }
  });

  test("holds for 30 days and 1,000 accounts at most, and is an administrator's to make and read", async () => {
    const harbour = await newOrganization();
    const { token } = await harbour.join("eve");
    const make = (request: object) => harbour.call("CreateOrganizationInvite", request);
    for (const request of [{ maxUses: 999 }, { maxUses: 1_000 }, { validFor: "2592000s" }]) {
      expect((await make(request)).status).toBe(200);
    }
    for (const request of [
      { maxUses: 1_001 },
      { maxUses: -1 },
      { validFor: "2592001s" },
      { validFor: "-1s" },
    ]) {
      expect([request, ...refusal(await make(request))]).toEqual([request, 400, "CONSTRAINT_VIOLATED"]);
    }
    for (const operation of ["CreateOrganizationInvite", "GetOrganizationInvite", "UpdateOrganization"]) {
      expect([operation, ...refusal(await harbour.call(operation, {}, token))]).toEqual([
        ...[operation, 403, "PERMISSION_DENIED"],
      ]);
    }
  });

  test("is stored as a hash and sealed, and its id is in no record", async () => {
    const harbour = await newOrganization();
    const inviteId = await harbour.invite();
    await harbour.call("GetOrganizationInvite");
    const bytes = Buffer.from(inviteId).toString("hex");
    const rows = await withRawData(server.dataDir, (raw) =>
      raw.rows<{ hash: Uint8Array; sealed: Uint8Array }>(
        "select * from organization_invite where organization_id = ?",
        harbour.organizationId,
      ),
    );
    expect(rows).toHaveLength(1);
    for (const { hash, sealed } of rows) {
      for (const each of [hash, sealed]) expect(Buffer.from(each).toString("hex")).not.toContain(bytes);
    }
    const { body } = await post(
      server,
      "EventService/ListAuditLogs",
      { pagination: { pageSize: 100 } },
      harbour.token,
    );
    expect(JSON.stringify(body)).not.toContain(inviteId);
    const kinds = body.entries.map(({ action, kind }: { action: string; kind: string }) => [action, kind]);
    expect(kinds.slice(0, 2)).toEqual([
      ["service.v1.OrganizationService/GetOrganizationInvite", "AUDIT_LOG_ENTRY_KIND_CREDENTIAL_ACCESS"],
      ["service.v1.OrganizationService/CreateOrganizationInvite", "AUDIT_LOG_ENTRY_KIND_RESOURCE_CHANGE"],
    ]);
  });

  test("is what an account joins with: an organization's id alone brings nobody in", async () => {
    const [harbour, island] = [await newOrganization(), await newOrganization()];
    await harbour.call("UpdateOrganization", { inviteDomains: { domains: [`${island.name}.example`] } });
    const join = (organizationId: string) =>
      post(server, "OrganizationService/JoinOrganization", { organizationId }, island.token);
    const [known, unknown] = [await join(harbour.organizationId), await join(v7())];
    expect([known.status, known.body]).toEqual([404, unknown.body]);
    const neither = await post(server, "OrganizationService/JoinOrganization", {}, island.token);
    expect(refusal(neither)).toEqual([400, "VALUE_UNUSABLE"]);
  });
});

describe("UpdateOrganization", () => {
  test("changes what it names, and domains are kept in lower case", async () => {
    const harbour = await newOrganization();
    const domains = ["Example.org", "example.com"];
    const first = await harbour.call("UpdateOrganization", { inviteDomains: { domains } });
    expect(first.body.organization).toMatchObject({
      name: harbour.name,
      inviteDomains: { domains: ["example.org", "example.com"] },
    });
    const second = await harbour.call("UpdateOrganization", { name: "New name" });
    expect(second.body.organization).toMatchObject({
      name: "New name",
      inviteDomains: { domains: ["example.org", "example.com"] },
    });
    expect((await harbour.call("GetOrganization")).body.organization).toEqual(second.body.organization);
    const cleared = await harbour.call("UpdateOrganization", { inviteDomains: {} });
    expect(cleared.body.organization.inviteDomains ?? null).toBeNull();
  });
});

describe("LeaveOrganization", () => {
  test("ends the caller's own membership, its tokens and streams", async () => {
    const harbour = await newOrganization();
    const { userId, token } = await harbour.join("fay");
    const other = await harbour.join("gus");
    const stranger = await post(
      server,
      "OrganizationService/LeaveOrganization",
      { userId: other.userId },
      token,
    );
    expect(refusal(stranger)).toEqual([403, "PERMISSION_DENIED"]);
    const watching = watch(createGrpcTransport({ baseUrl: server.url }), token);
    await watching.opened;
    const leave = () => post(server, "OrganizationService/LeaveOrganization", { userId }, token);
    expect((await leave()).status).toBe(200);
    await watching.ended;
    expect((await leave()).status).toBe(401);
    expect((await harbour.user("GetUser", { userId })).body.user.status).toBe("USER_STATUS_LEFT");
    const { userId: last } = harbour;
    const alone = await post(
      server,
      "OrganizationService/LeaveOrganization",
      { userId: last },
      harbour.token,
    );
    expect(refusal(alone)).toEqual([400, "LAST_ADMINISTRATOR"]);
  });
});

describe("SetSuspended", () => {
  const whoami = (token: string) => post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);

  test("ends what the member has in the organization at once, and lifting brings back the member alone", async () => {
    const [harbour, island] = [await newOrganization(), await newOrganization()];
    const email = `hal@${harbour.name}.example`;
    const hal = await addMember(server, {
      organizationId: harbour.organizationId,
      email,
      administrator: true,
    });
    const elsewhere = await addMember(server, { organizationId: island.organizationId, email });
    const { userId, token } = hal;
    const { serviceAccount } = (
      await post(
        server,
        "ServiceAccountService/CreateServiceAccount",
        { name: "Robot", validUntil: "2999-12-31T00:00:00Z" },
        token,
      )
    ).body;
    const robot = await post(
      server,
      "ServiceAccountService/CreateServiceAccountToken",
      { serviceAccountId: serviceAccount.id },
      token,
    );
    const { runner } = (await post(server, "RunnerService/CreateRunner", { name: "attic" }, token)).body;
    const { id: environmentClass } = (
      await post(
        server,
        "RunnerConfigurationService/CreateEnvironmentClass",
        { runnerId: runner.runnerId, displayName: "Small", description: "a machine" },
        token,
      )
    ).body;
    const spec = {
      machine: { class: environmentClass },
      content: { initializer: repository("https://git.example.org/a") },
    };
    const { environment } = (
      await post(server, "EnvironmentService/CreateEnvironment", { name: "Hal's", spec }, token)
    ).body;
    const inside = await withServerData(server, (store, keys) =>
      insertEnvironmentToken(store, keys, {
        organizationId: harbour.organizationId,
        environmentId: environment.id,
      }),
    );
    const watching = watch(createGrpcTransport({ baseUrl: server.url }), token);
    await watching.opened;
    expect((await whoami(inside.value)).status).toBe(200);

    const set = (suspended: boolean) => harbour.user("SetSuspended", { userId, suspended });
    expect((await set(true)).body).toEqual({});
    await watching.ended;
    const unknown = await whoami("cr_pat_unknown");
    for (const each of [token, robot.body.token, inside.value]) {
      expect((await whoami(each)).body).toEqual(unknown.body);
    }
    expect((await whoami(elsewhere.token)).status).toBe(200);
    const stopped = await post(
      server,
      "EnvironmentService/GetEnvironment",
      { environmentId: environment.id },
      harbour.token,
    );
    expect(stopped.body.environment.spec.desiredPhase).toBe("ENVIRONMENT_PHASE_STOPPED");
    const status = async () => (await harbour.user("GetUser", { userId })).body.user.status;
    expect(await status()).toBe("USER_STATUS_SUSPENDED");
    const { members } = (
      await harbour.call("ListMembers", { filter: { statuses: ["USER_STATUS_SUSPENDED"] } })
    ).body;
    expect(members.map((each: { userId: string }) => each.userId)).toEqual([userId]);
    // It counts as an administrator no more.
    const demoted = await harbour.call("SetRole", {
      userId: harbour.userId,
      role: "ORGANIZATION_ROLE_MEMBER",
    });
    expect(refusal(demoted)).toEqual([400, "LAST_ADMINISTRATOR"]);

    expect((await set(false)).status).toBe(200);
    expect(await status()).toBe("USER_STATUS_ACTIVE");
    for (const each of [token, robot.body.token]) expect((await whoami(each)).status).toBe(401);
    expect((await whoami(inside.value)).status).toBe(200);
  });

  test("is for administrators, of others", async () => {
    const harbour = await newOrganization();
    const { userId, token } = await harbour.join("ida");
    const member = await harbour.user("SetSuspended", { userId: harbour.userId, suspended: true }, token);
    expect(refusal(member)).toEqual([403, "PERMISSION_DENIED"]);
    const own = await harbour.user("SetSuspended", { userId: harbour.userId, suspended: true });
    expect(refusal(own)).toEqual([400, "OWN_ACCOUNT"]);
    const island = await newOrganization();
    const foreign = await island.user("SetSuspended", { userId, suspended: true });
    expect(refusal(foreign)).toEqual([404, "NOT_FOUND"]);
  });
});

test("GetAuthenticatedUser answers who the caller is", async () => {
  const harbour = await newOrganization();
  const { userId, token } = await harbour.join("joe");
  const { user } = (await harbour.user("GetAuthenticatedUser", {}, token)).body;
  expect(user).toMatchObject({
    id: userId,
    organizationId: harbour.organizationId,
    email: `joe@${harbour.name}.example`,
    status: "USER_STATUS_ACTIVE",
  });
  expect((await harbour.user("GetUser", { userId })).body.user).toEqual(user);
});
