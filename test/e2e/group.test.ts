import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { setProviderMemberships } from "../../src/services/access/group/provider-groups.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let organizationId: string;
let administratorId: string;
let member: TestMember;
let foreign: Awaited<ReturnType<typeof addOrganization>>;
beforeAll(async () => {
  server = await startHostedServer();
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
  ({ organizationId } = body);
  administratorId = body.subject.id;
  member = await addMember(server, { organizationId, email: "member@example.org" });
  foreign = await addOrganization(server, "Another organization");
});
afterAll(stopAll);

type Body = Answer["body"];

const call = (operation: string, body: object, token?: string) =>
  post(server, operation.includes("/") ? operation : `GroupService/${operation}`, body, token);
const ok = async (operation: string, body: object, token?: string): Promise<Body> => {
  const answer = await call(operation, body, token);
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body;
};
const refusal = (answer: Answer) => [answer.body.code, reasonOf(answer)];
const create = async (name: string, description = ""): Promise<Body> =>
  (await ok("CreateGroup", { organizationId, name, description })).group;
const user = (id: string) => ({ id, principal: "PRINCIPAL_USER" });
const machine = (id: string) => ({ id, principal: "PRINCIPAL_SERVICE_ACCOUNT" });
const join = async (groupId: string, subject: object): Promise<Body> =>
  (await ok("CreateMembership", { groupId, subject })).member;
const serviceAccount = async (name: string): Promise<string> =>
  (await ok("ServiceAccountService/CreateServiceAccount", { name, validUntil: "2999-12-31T00:00:00Z" }))
    .serviceAccount.id;
const memberIds = async (groupId: string) =>
  (await ok("ListMemberships", { groupId })).members.map((each: Body) => each.subject.id);
const inStore = <T>(fn: Parameters<typeof withServerData<T>>[1]) => withServerData(server, fn);
/** Sets what the claims of a provider give the member. */
const claims = (provider: string, names: readonly string[]) =>
  inStore((store) =>
    store.write(SYSTEM, "test", (tx) =>
      setProviderMemberships(tx, { organizationId }, member.userId, provider, names),
    ),
  );

describe("a group", () => {
  test("is made by administrators, read by members, changed and deleted", async () => {
    const made = await create("Releasers", "who releases");
    expect(made).toMatchObject({
      organizationId,
      name: "Releasers",
      description: "who releases",
      systemManaged: false,
      memberCount: 0,
      directShare: false,
    });
    expect(made.createdAt).toBe(made.updatedAt);
    expect((await ok("GetGroup", { id: made.id }, member.token)).group).toEqual(made);
    expect((await ok("GetGroup", { groupId: made.id }, member.token)).group).toEqual(made);
    expect((await ok("GetGroup", { name: "RELEASERS" }, member.token)).group).toEqual(made);
    const { group } = await ok("UpdateGroup", { groupId: made.id, name: "Keepers" });
    expect(group).toMatchObject({ id: made.id, name: "Keepers", description: "" });
    await ok("DeleteGroup", { groupId: made.id });
    for (const [operation, request] of [
      ["GetGroup", { id: made.id }],
      ["UpdateGroup", { groupId: made.id, name: "Keepers" }],
      ["DeleteGroup", { groupId: made.id }],
      ["ListMemberships", { groupId: made.id }],
      ["CreateMembership", { groupId: made.id, subject: user(member.userId) }],
      ["GetMembership", { groupId: made.id, subject: user(member.userId) }],
    ] as const)
      expect(refusal(await call(operation, request))).toEqual(["not_found", "NOT_FOUND"]);
    expect(refusal(await call("GetGroup", {}))).toEqual(["invalid_argument", "VALUE_UNUSABLE"]);
  });

  test("has a name of its own, whatever the letter case, in its organization", async () => {
    const { id } = await create("Straße");
    expect(refusal(await call("CreateGroup", { organizationId, name: "STRAßE" }))).toEqual([
      "already_exists",
      "VALUE_TAKEN",
    ]);
    await ok("UpdateGroup", { groupId: id, name: "STRAßE" });
    const other = await create("Other");
    expect(refusal(await call("UpdateGroup", { groupId: other.id, name: "Straße" }))).toEqual([
      "already_exists",
      "VALUE_TAKEN",
    ]);
    const theirs = { organizationId: foreign.organizationId, name: "Straße" };
    expect((await call("CreateGroup", theirs, foreign.token)).status).toBe(200);
    expect(refusal(await call("CreateGroup", theirs))).toEqual(["not_found", "NOT_FOUND"]);
  });

  test.each([
    [2, 400],
    [3, 200],
    [80, 200],
    [81, 400],
  ])("with a name of %d characters answers %d", async (length, status) => {
    const name = `${"é".repeat(length - 1)}${length % 2}`;
    expect((await call("CreateGroup", { organizationId, name })).status).toBe(status);
  });

  test.each([
    [255, 200],
    [256, 400],
  ])("with a description of %d characters answers %d", async (length, status) => {
    const request = { organizationId, name: `Described ${length}`, description: "é".repeat(length) };
    expect((await call("CreateGroup", request)).status).toBe(status);
  });

  test("is one of 1,000 at most", async () => {
    const own = await addOrganization(server, "Many groups");
    await inStore((store) =>
      store.write(SYSTEM, "test", async (tx) => {
        for (let each = 0; each < 998; each++)
          await builderOf(tx.db)
            .insertInto("member_group")
            .values({
              id: tx.newId(),
              organization_id: own.organizationId,
              name_folded: `${each}`,
              provider: null,
              member_count: 0,
              search_text: "",
              body: "{}",
            })
            .execute();
      }),
    );
    const one = (name: string) =>
      call("CreateGroup", { organizationId: own.organizationId, name }, own.token);
    expect((await one("Group 999")).status).toBe(200);
    expect((await one("Group 1000")).status).toBe(200);
    const refused = await one("Group 1001");
    expect(refusal(refused)).toEqual(["failed_precondition", "LIMIT_REACHED"]);
    expect(JSON.stringify(refused.body)).toContain('"limit":"1000"');
  });
});

describe("a list of groups", () => {
  test("is searched, filtered and cut into pages", async () => {
    const own = await addOrganization(server, "Listed groups");
    const ids: string[] = [];
    for (const name of ["Alpha One", "Beta", "Alpha Two"]) {
      const request = { organizationId: own.organizationId, name };
      ids.push((await ok("CreateGroup", request, own.token)).group.id);
    }
    const list = async (filter: object) =>
      (await ok("ListGroups", { filter }, own.token)).groups.map((each: Body) => each.id);
    expect(await list({})).toEqual(ids);
    expect(await list({ search: "ALPHA" })).toEqual([ids[0], ids[2]]);
    expect(await list({ groupIds: [ids[1], v7()] })).toEqual([ids[1]]);
    expect(await list({ systemManaged: true })).toEqual([]);
    expect(await list({ systemManaged: false })).toEqual(ids);
    expect(await list({ directShare: true })).toEqual([]);
    expect(await list({ directShare: false })).toEqual(ids);
    const first = await ok("ListGroups", { pagination: { pageSize: 2 } }, own.token);
    expect(first.groups.map((each: Body) => each.id)).toEqual(ids.slice(0, 2));
    const pagination = { pageSize: 2, token: first.pagination.nextToken };
    const second = await ok("ListGroups", { pagination }, own.token);
    expect(second.groups.map((each: Body) => each.id)).toEqual(ids.slice(2));
    expect(second.pagination.nextToken).toBe("");
  });
});

describe("a membership", () => {
  test("is of a user or a service account, once", async () => {
    const group = await create("Members");
    const nightly = await serviceAccount("Nightly");
    const one = await join(group.id, user(member.userId));
    expect(one).toEqual({
      id: one.id,
      groupId: group.id,
      subject: user(member.userId),
      name: "The person of member@example.org",
      avatarUrl: "",
    });
    expect(await join(group.id, user(member.userId))).toEqual(one);
    const two = await join(group.id, machine(nightly));
    expect(two.name).toBe("Nightly");
    const { members } = await ok("ListMemberships", { groupId: group.id }, member.token);
    expect(members).toEqual([one, two]);
    expect((await ok("GetGroup", { id: group.id })).group.memberCount).toBe(2);
    const request = { groupId: group.id, subject: machine(nightly) };
    expect((await ok("GetMembership", request, member.token)).member).toEqual(two);
    for (const [search, found] of [
      ["NIGHT", [two]],
      ["member@EXAMPLE", [one]],
      ["nobody", []],
    ] as const)
      expect((await ok("ListMemberships", { groupId: group.id, filter: { search } })).members).toEqual(found);
    await ok("DeleteMembership", { membershipId: one.id });
    expect(await memberIds(group.id)).toEqual([nightly]);
    expect((await ok("GetGroup", { id: group.id })).group.memberCount).toBe(1);
    const again = await call("DeleteMembership", { membershipId: one.id });
    expect(refusal(again)).toEqual(["not_found", "NOT_FOUND"]);
  });

  test("is of nobody else", async () => {
    const group = await create("Nobody else");
    const ask = async (subject?: object) =>
      refusal(await call("CreateMembership", { groupId: group.id, subject }));
    expect(await ask(user(v7()))).toEqual(["not_found", "NOT_FOUND"]);
    expect(await ask(user(foreign.userId))).toEqual(["not_found", "NOT_FOUND"]);
    expect(await ask(machine(member.userId))).toEqual(["not_found", "NOT_FOUND"]);
    expect(await ask({ id: member.accountId, principal: "PRINCIPAL_ACCOUNT" })).toEqual([
      "invalid_argument",
      "VALUE_UNUSABLE",
    ]);
    expect(await ask()).toEqual(["invalid_argument", "VALUE_UNUSABLE"]);
    expect(await memberIds(group.id)).toEqual([]);
  });

  test("is one of 10,000 of a group at most", async () => {
    const group = await create("Full");
    const set = (count: number) =>
      inStore((store) =>
        store.write(SYSTEM, "test", (tx) =>
          builderOf(tx.db)
            .updateTable("member_group")
            .set({ member_count: count })
            .where("id", "=", group.id)
            .execute(),
        ),
      );
    await set(9_999);
    await join(group.id, user(member.userId));
    const refused = await call("CreateMembership", { groupId: group.id, subject: user(administratorId) });
    expect(refusal(refused)).toEqual(["failed_precondition", "LIMIT_REACHED"]);
    // One who is in stays in.
    await join(group.id, user(member.userId));
  });

  test("ends with the member and with the service account", async () => {
    const group = await create("Leavers");
    const leaver = await addMember(server, { organizationId, email: "leaver@example.org" });
    const gone = await serviceAccount("Gone");
    await join(group.id, user(leaver.userId));
    await join(group.id, machine(gone));
    await join(group.id, user(administratorId));
    await ok("OrganizationService/RemoveMember", { organizationId, userId: leaver.userId });
    await ok("ServiceAccountService/DeleteServiceAccount", { serviceAccountId: gone });
    expect(await memberIds(group.id)).toEqual([administratorId]);
    expect((await ok("GetGroup", { id: group.id })).group.memberCount).toBe(1);
    await addMemberAgain(leaver);
    expect(await memberIds(group.id)).toEqual([administratorId]);
  });

  test("is recorded, as its group is", async () => {
    const group = await create("Recorded");
    const made = await join(group.id, user(member.userId));
    await ok("DeleteMembership", { membershipId: made.id });
    await ok("DeleteGroup", { groupId: group.id });
    const filter = { subjectIds: [group.id, made.id] };
    const { entries } = await ok("EventService/ListAuditLogs", { filter });
    expect(entries.map(({ action, subjectType }: Body) => [action, subjectType]).toReversed()).toEqual([
      ["service.v1.GroupService/CreateGroup", "RESOURCE_TYPE_GROUP"],
      ["service.v1.GroupService/CreateMembership", "RESOURCE_TYPE_GROUP_MEMBERSHIP_CHANGED"],
      ["service.v1.GroupService/DeleteMembership", "RESOURCE_TYPE_GROUP_MEMBERSHIP_CHANGED"],
      ["service.v1.GroupService/DeleteGroup", "RESOURCE_TYPE_GROUP"],
    ]);
  });

  /** Has one who left join again, under the same user id. */
  async function addMemberAgain({ userId }: TestMember) {
    await inStore((store) =>
      store.write(SYSTEM, "test", (tx) =>
        builderOf(tx.db).updateTable("member").set({ left_at: null }).where("id", "=", userId).execute(),
      ),
    );
    expect((await ok("UserService/GetUser", { userId })).user.status).toBe("USER_STATUS_ACTIVE");
  }
});

describe("only administrators", () => {
  test("change groups and their members", async () => {
    const group = await create("Closed");
    const made = await join(group.id, user(administratorId));
    for (const [operation, request] of [
      ["CreateGroup", { organizationId, name: "Mine" }],
      ["UpdateGroup", { groupId: group.id, name: "Mine" }],
      ["DeleteGroup", { groupId: group.id }],
      ["CreateMembership", { groupId: group.id, subject: user(member.userId) }],
      ["DeleteMembership", { membershipId: made.id }],
    ] as const)
      expect(refusal(await call(operation, request, member.token))).toEqual([
        "permission_denied",
        "PERMISSION_DENIED",
      ]);
    expect(await memberIds(group.id)).toEqual([administratorId]);
  });
});

describe("what a provider's claims give", () => {
  test("are memberships that it takes away again, and groups that it keeps", async () => {
    const mine = await create("By hand");
    await join(mine.id, user(member.userId));
    const named = async (name: string) => (await ok("GetGroup", { name })).group;
    expect(await claims("oidc:one", ["Claimed", "BY HAND", "claimed"])).toEqual({ unusable: [] });
    const claimed = await named("Claimed");
    expect(claimed).toMatchObject({ name: "claimed", systemManaged: true, memberCount: 1 });
    expect(await claims("oidc:two", ["Elsewhere"])).toEqual({ unusable: [] });
    expect(await claims("oidc:one", ["no", "x".repeat(81), "a\nb c", "Later"])).toEqual({
      unusable: ["no", "x".repeat(81), "a\nb c"],
    });
    expect(await memberIds(claimed.id)).toEqual([]);
    // What people gave stays, and so does what another provider gave.
    expect(await memberIds(mine.id)).toEqual([member.userId]);
    expect(await memberIds((await named("Elsewhere")).id)).toEqual([member.userId]);
    expect(await memberIds((await named("Later")).id)).toEqual([member.userId]);
  });

  test("is not changed by people, but deleted", async () => {
    await claims("oidc:one", ["Kept"]);
    const { group } = await ok("GetGroup", { name: "Kept" });
    const { members } = await ok("ListMemberships", { groupId: group.id });
    const KEPT = ["failed_precondition", "MANAGED_BY_PROVIDER"];
    expect(refusal(await call("UpdateGroup", { groupId: group.id, name: "Mine" }))).toEqual(KEPT);
    await ok("UpdateGroup", { groupId: group.id, name: "Kept", description: "of the provider" });
    const subject = user(administratorId);
    expect(refusal(await call("CreateMembership", { groupId: group.id, subject }))).toEqual(KEPT);
    expect(refusal(await call("DeleteMembership", { membershipId: members[0].id }))).toEqual(KEPT);
    await ok("DeleteGroup", { groupId: group.id });
  });
});
