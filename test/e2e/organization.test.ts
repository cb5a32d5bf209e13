import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, runHostedCommand, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

type Body = Answer["body"];

/** A new organization with an administrator, and what calls of it look like. */
async function newOrganization() {
  const name = `org-${v7()}`;
  const { organizationId, userId, token } = await addOrganization(server, name);
  const call = (operation: string, body: object = {}, as = token) =>
    post(server, `OrganizationService/${operation}`, { organizationId, ...body }, as);
  const join = (who: string, administrator = false): Promise<TestMember> =>
    addMember(server, { organizationId, email: `${who}@${name}.example`, administrator });
  const names = async (body: object): Promise<string[]> =>
    (await call("ListMembers", body)).body.members.map((each: Body) => each.email.split("@")[0]);
  return { name, organizationId, userId, token, call, join, names };
}

const refusal = ({ status, body }: Answer) => [status, body.code, reasonOf({ status, body } as Answer)];

describe("CreateOrganization", () => {
  test("is the operator's alone unless a setting lets users do it", async () => {
    const answer = await post(server, "OrganizationService/CreateOrganization", { name: "Mine" });
    expect(refusal(answer)).toEqual([403, "permission_denied", "PERMISSION_DENIED"]);
    expect(answer.body.details[0].debug.metadata).toEqual({ permission: "create_organization" });
  });

  test("makes the caller's account the first administrator, in an organization that works", async () => {
    const open = await startHostedServer({ args: ["--allow-organization-creation"] });
    const { body, status } = await post(open, "OrganizationService/CreateOrganization", { name: "Mine" });
    expect(status).toBe(200);
    expect(body.organization.name).toBe("Mine");
    expect(body.member).toMatchObject({
      role: "ORGANIZATION_ROLE_ADMIN",
      fullName: "Administrator",
      email: "admin@localhost",
      status: "USER_STATUS_ACTIVE",
      loginProvider: "token",
    });
    const { account } = (await post(open, "AccountService/GetAccount")).body;
    expect(account.organizationId).not.toBe(body.organization.id);
    expect(account.memberships.map((each: Body) => [each.userId, each.organizationId])).toContainEqual([
      body.member.userId,
      body.organization.id,
    ]);
    const hidden = await post(open, "OrganizationService/GetOrganization", {
      organizationId: body.organization.id,
    });
    expect(hidden.status).toBe(404);

    const minted = await runHostedCommand([
      ...["token", "create", "--user", body.member.userId],
      ...["--data-dir", open.dataDir],
    ]);
    const token = minted.stdout.trim();
    const seen = await post(
      open,
      "OrganizationService/GetOrganization",
      { organizationId: body.organization.id },
      token,
    );
    expect(seen.body.organization).toEqual(body.organization);
    const project = await post(
      open,
      "ProjectService/CreateProject",
      { initializer: repository("https://git.example.org/a") },
      token,
    );
    expect(project.status).toBe(200);
    const trail = await post(open, "EventService/ListAuditLogs", {}, token);
    const creations = trail.body.entries.filter((each: Body) => each.action.endsWith("/CreateOrganization"));
    expect(creations.length).toBeGreaterThan(2);
    for (const { actorId } of creations) expect(actorId).toBe(body.member.userId);
  });
});

describe("GetOrganization", () => {
  test("answers members, and everybody else like an organization that does not exist", async () => {
    const { organizationId, name, call, join } = await newOrganization();
    const { token } = await join("reader");
    expect((await call("GetOrganization", {}, token)).body.organization).toMatchObject({
      id: organizationId,
      name,
    });
    const foreign = await post(server, "OrganizationService/GetOrganization", { organizationId });
    const absent = await post(server, "OrganizationService/GetOrganization", { organizationId: v7() });
    expect([foreign.status, foreign.body]).toEqual([404, absent.body]);
  });
});

describe("ListMembers", () => {
  test("orders by joining, or by name without regard to case, in either direction", async () => {
    const { names, join } = await newOrganization();
    for (const who of ["carol", "Bob", "dave"]) await join(who);
    const joined = await names({});
    expect(joined.slice(1)).toEqual(["carol", "Bob", "dave"]);
    expect(await names({ sort: { order: "SORT_ORDER_DESC" } })).toEqual(joined.toReversed());
    const byName = await names({ sort: { field: "SORT_FIELD_NAME" } });
    expect(byName.slice(1)).toEqual(["Bob", "carol", "dave"]);
    expect(await names({ sort: { field: "SORT_FIELD_NAME", order: "SORT_ORDER_DESC" } })).toEqual(
      byName.toReversed(),
    );
  });

  test("pages by name without repeating or dropping a row while members leave and come", async () => {
    const { organizationId, call, join } = await newOrganization();
    const people = new Map<string, TestMember>();
    for (const who of ["ann", "bea", "cid", "dan", "eve"]) people.set(who, await join(who));
    const sort = { field: "SORT_FIELD_NAME" };
    const page = async (token: string) =>
      (await call("ListMembers", { sort, filter: { search: "example" }, pagination: { pageSize: 2, token } }))
        .body;
    const first = await page("");
    // The last of the first page leaves: its place in the order stays known.
    const last = first.members[1].userId;
    await call("RemoveMember", { organizationId, userId: last });
    await join("abe");
    const second = await page(first.pagination.nextToken);
    const third = await page(second.pagination.nextToken);
    const seen = [first, second, third].flatMap(({ members }) =>
      members.map((each: Body) => each.email.split("@")[0]),
    );
    expect(seen).toEqual(["ann", "bea", "cid", "dan", "eve"]);
    expect(third.pagination.nextToken).toBe("");
  });

  test("pages by name without a search in either direction", async () => {
    const { call, join, names } = await newOrganization();
    for (const who of ["dan", "ann", "Cid", "bea"]) await join(who);
    for (const order of ["SORT_ORDER_ASC", "SORT_ORDER_DESC"]) {
      const sort = { field: "SORT_FIELD_NAME", order };
      const paged: string[] = [];
      let token = "";
      do {
        const { body } = await call("ListMembers", { sort, pagination: { pageSize: 2, token } });
        paged.push(...body.members.map((each: Body) => each.email.split("@")[0]));
        token = body.pagination.nextToken;
      } while (token !== "");
      expect(paged).toHaveLength(5);
      expect(paged).toEqual(await names({ sort }));
    }
  });

  test("filters by search, status, role and id, and counts what matches", async () => {
    const { organizationId, call, join, names, userId } = await newOrganization();
    const gone = await join("gone");
    const here = await join("Straße");
    await join("boss", true);
    await call("RemoveMember", { organizationId, userId: gone.userId });
    expect(await names({ filter: { search: "STRASSE" } })).toEqual([]);
    expect(await names({ filter: { search: "sTRAß" } })).toEqual(["Straße"]);
    expect(await names({ filter: { search: here.userId.slice(4, 30).toUpperCase() } })).toEqual(["Straße"]);
    expect(await names({ filter: { statuses: ["USER_STATUS_LEFT"] } })).toEqual(["gone"]);
    expect(await names({ filter: { userIds: [here.userId, gone.userId] } })).toEqual(["Straße"]);
    const administrators = await call("ListMembers", {
      filter: { roles: ["ORGANIZATION_ROLE_ADMIN"] },
      count: { include: true },
    });
    expect(administrators.body.members.map((each: Body) => each.userId)).toContain(userId);
    expect(administrators.body.count).toEqual({ value: 2, relation: "COUNT_RESPONSE_RELATION_EQUAL" });
    const left = await call("ListMembers", { filter: { statuses: ["USER_STATUS_LEFT"] } });
    expect(left.body.members[0]).toMatchObject({ userId: gone.userId, status: "USER_STATUS_LEFT" });
  });
});

describe("SetRole", () => {
  test("binds from the member's next request on", async () => {
    const { organizationId, call, join } = await newOrganization();
    const { userId, token } = await join("climber");
    const invite = () => post(server, "RunnerService/CreateRunner", { name: "mine" }, token);
    expect((await invite()).status).toBe(403);
    const role = (name: string) =>
      call("SetRole", { organizationId, userId, role: `ORGANIZATION_ROLE_${name}` });
    expect((await role("ADMIN")).body).toEqual({});
    expect((await invite()).status).toBe(200);
    expect((await role("MEMBER")).status).toBe(200);
    expect((await role("MEMBER")).status).toBe(200);
    expect((await invite()).status).toBe(403);
  });

  test("wants a role, and a user who is a member", async () => {
    const { call, join } = await newOrganization();
    const { userId } = await join("somebody");
    expect(refusal(await call("SetRole", { userId }))).toEqual([400, "invalid_argument", "VALUE_UNUSABLE"]);
    const role = "ORGANIZATION_ROLE_ADMIN";
    expect(refusal(await call("SetRole", { userId: v7(), role }))).toEqual([404, "not_found", "NOT_FOUND"]);
    await call("RemoveMember", { userId });
    expect((await call("SetRole", { userId, role })).body.message).toBe("user not found");
  });
});

describe("RemoveMember", () => {
  test("closes the member's tokens at once, also to one who joins again, and keeps what it made", async () => {
    const { organizationId, name, call, join, names } = await newOrganization();
    const { userId, token } = await join("leaver");
    const made = await post(
      server,
      "ProjectService/CreateProject",
      { initializer: repository("https://git.example.org/kept") },
      token,
    );
    const projectId = made.body.project.id;
    expect((await call("RemoveMember", { userId })).body).toEqual({});
    const after = await post(server, "ProjectService/GetProject", { projectId }, token);
    expect(refusal(after)).toEqual([401, "unauthenticated", "UNAUTHENTICATED"]);
    expect(refusal(await call("RemoveMember", { userId }))).toEqual([404, "not_found", "NOT_FOUND"]);
    expect(await names({})).not.toContain("leaver");

    const again = await runHostedCommand([
      ...["member", "add", "--organization", organizationId, "--email", `leaver@${name}.example`],
      ...["--name", "another name", "--data-dir", server.dataDir],
    ]);
    expect(again.code).toBe(0);
    expect((await post(server, "ProjectService/GetProject", { projectId }, token)).status).toBe(401);
    const renamed = await post(
      server,
      "ProjectService/UpdateProject",
      { projectId, name: "Mine again" },
      again.stdout.trim(),
    );
    expect([renamed.status, renamed.body.project.metadata.creator.id]).toEqual([200, userId]);
  });
});

describe("the last administrator", () => {
  test("can be neither demoted nor removed, also by itself", async () => {
    const { organizationId, userId, call, join } = await newOrganization();
    const other = await join("other", true);
    const demote = (id: string, as?: string) =>
      call("SetRole", { userId: id, role: "ORGANIZATION_ROLE_MEMBER" }, as);
    expect((await demote(userId)).status).toBe(200);
    for (const refused of [
      await demote(other.userId, other.token),
      await call("RemoveMember", { userId: other.userId }, other.token),
    ]) {
      expect(refusal(refused)).toEqual([400, "failed_precondition", "LAST_ADMINISTRATOR"]);
      expect(refused.body.details[0].debug.metadata).toEqual({ organization_id: organizationId });
    }
  });

  test("remains when two administrators demote each other at the same time", async () => {
    for (let round = 0; round < 5; round++) {
      const { userId, token, call, join } = await newOrganization();
      const other = await join("other", true);
      const role = "ORGANIZATION_ROLE_MEMBER";
      const answers = await Promise.all([
        call("SetRole", { userId: other.userId, role }, token),
        call("SetRole", { userId, role }, other.token),
      ]);
      // The one that came second was judged as administrator when it came, and by the count when it wrote.
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    }
  });
});
