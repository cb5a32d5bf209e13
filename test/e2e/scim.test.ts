import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, runHostedCommand, startHostedServer, stopAll } from "../harness/server.ts";

const USER = "urn:ietf:params:scim:schemas:core:2.0:User";
const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group";
const PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
const ERROR = "urn:ietf:params:scim:api:messages:2.0:Error";
const FAR = "2999-12-31T00:00:00Z";

type Body = Answer["body"];

let server: ReachableServer;
let made = 0;
/** An organization of its own for each test, and the token of what provisions it. */
let own: { organizationId: string; userId: string; token: string };
let provisioner: string;
beforeAll(async () => {
  server = await startHostedServer();
});
beforeEach(async () => {
  made += 1;
  own = await addOrganization(server, `provisioned-${made}`);
  provisioner = await serviceAccountToken({ name: "Provider", provisioning: true });
});
afterAll(stopAll);

const call = (operation: string, body: object, token = own.token) => post(server, operation, body, token);
const ok = async (operation: string, body: object, token?: string): Promise<Body> => {
  const answer = await call(operation, body, token);
  expect([answer.status, answer.body]).toEqual([200, answer.body]);
  return answer.body;
};
async function serviceAccountToken(request: object): Promise<string> {
  const { serviceAccount } = await ok("ServiceAccountService/CreateServiceAccount", {
    validUntil: FAR,
    ...request,
  });
  const serviceAccountId = serviceAccount.id;
  return (await ok("ServiceAccountService/CreateServiceAccountToken", { serviceAccountId })).token;
}

async function scim(method: string, path: string, body?: unknown, token = provisioner, header: object = {}) {
  const isText = typeof body === "string" || body instanceof Uint8Array;
  const res = await fetch(`${server.url}/scim/v2${path}`, {
    method,
    headers: {
      ...(token !== "" && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { "content-type": "application/scim+json" }),
      ...header,
    },
    ...(body !== undefined && {
      body: isText ? (body as BodyInit) : JSON.stringify(body),
    }),
  });
  const text = await res.text();
  const type = res.headers.get("content-type");
  const location = res.headers.get("location");
  return { status: res.status, type, location, body: (text === "" ? undefined : JSON.parse(text)) as Body };
}
const address = () => `${v7()}@example.org`;
const filtered = (what: string) => `?filter=${encodeURIComponent(what)}`;
const createUser = async (userName = address(), more: object = {}): Promise<Body> => {
  const created = await scim("POST", "/Users", { schemas: [USER], userName, ...more });
  expect([created.status, created.body]).toEqual([201, created.body]);
  return created.body;
};
const patch = (path: string, ...Operations: readonly object[]) =>
  scim("PATCH", path, { schemas: [PATCH], Operations });
const failure = async (answer: ReturnType<typeof scim>) => {
  const { status, body, type } = await answer;
  expect(type).toBe("application/scim+json");
  expect(body).toMatchObject({ schemas: [ERROR], status: String(status), detail: expect.any(String) });
  return [status, body.scimType];
};
const member = (userId: string): Promise<Body> => ok("UserService/GetUser", { userId });

describe("a provider that sends operations in capitals, paths and values as texts", () => {
  test("finds nobody, creates, updates, deactivates and deletes a user", async () => {
    const userName = `Test_User_${v7()}@Example.org`;
    const query = filtered(`userName eq "${userName}"`);
    expect((await scim("GET", `/Users${query}`)).body).toEqual({
      schemas: ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
      totalResults: 0,
      startIndex: 1,
      itemsPerPage: 0,
      Resources: [],
    });
    const created = await scim("POST", "/Users", {
      schemas: [USER, ENTERPRISE],
      externalId: "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
      userName,
      active: true,
      emails: [{ primary: true, type: "work", value: userName }],
      meta: { resourceType: "User" },
      name: { formatted: "givenName familyName", familyName: "familyName", givenName: "givenName" },
      roles: [],
    });
    expect(created.status).toBe(201);
    const { id } = created.body;
    expect(created.body).toMatchObject({
      schemas: [USER],
      userName: userName.toLowerCase(),
      externalId: "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
      displayName: "givenName familyName",
      active: true,
      meta: { resourceType: "User", location: `${server.url}/scim/v2/Users/${id}` },
    });
    expect((await scim("GET", `/Users${query}`)).body).toMatchObject({
      totalResults: 1,
      Resources: [created.body],
    });
    expect((await scim("GET", `/Users/${id}`)).body).toEqual(created.body);
    const updated = await patch(
      `/Users/${id}`,
      { op: "Replace", path: 'emails[type eq "work"].value', value: "updatedEmail@example.org" },
      { op: "Replace", path: "name.familyName", value: "updatedFamilyName" },
    );
    expect([updated.status, updated.body.displayName]).toEqual([200, "givenName updatedFamilyName"]);
    const renamed = await patch(`/Users/${id}`, {
      op: "Replace",
      path: "userName",
      value: `new-${userName}`,
    });
    expect(renamed.body.userName).toBe(`new-${userName}`.toLowerCase());
    const disabled = await patch(`/Users/${id}`, { op: "Replace", path: "active", value: "False" });
    expect([disabled.status, disabled.body.active]).toEqual([200, false]);
    expect((await member(id)).user.status).toBe("USER_STATUS_SUSPENDED");
    const enabled = await patch(`/Users/${id}`, { op: "Add", path: "active", value: "True" });
    expect(enabled.body.active).toBe(true);
    expect((await member(id)).user.status).toBe("USER_STATUS_ACTIVE");
    expect((await scim("DELETE", `/Users/${id}`)).status).toBe(204);
    expect((await member(id)).user.status).toBe("USER_STATUS_LEFT");
    expect(await failure(scim("GET", `/Users/${id}`))).toEqual([404, undefined]);
    expect(await failure(scim("DELETE", `/Users/${id}`))).toEqual([404, undefined]);
  });

  test("finds no group, creates one without members, and changes them one by one", async () => {
    const [one, two] = [await createUser(), await createUser()];
    const query = `?excludedAttributes=members&filter=${encodeURIComponent('displayName eq "displayName"')}`;
    expect((await scim("GET", `/Groups${query}`)).body.totalResults).toBe(0);
    const created = await scim("POST", "/Groups", {
      schemas: [GROUP],
      externalId: "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
      displayName: "displayName",
      meta: { resourceType: "Group" },
    });
    expect(created.status).toBe(201);
    const { id } = created.body;
    const [found] = (await scim("GET", `/Groups${query}`)).body.Resources;
    expect([found.id, found.externalId, "members" in found]).toEqual([id, created.body.externalId, false]);
    const path = `/Groups/${id}`;
    const members = async () => (await scim("GET", path)).body.members.map(({ value }: Body) => value);
    await patch(path, { op: "Replace", path: "displayName", value: "newName" });
    await patch(path, { op: "Add", path: "members", value: [{ $ref: null, value: one.id }] });
    await patch(path, { op: "Add", path: "members", value: [{ $ref: null, value: two.id }] });
    expect(await members()).toEqual([one.id, two.id]);
    const group = (await ok("GroupService/GetGroup", { name: "newName" })).group;
    expect(group).toMatchObject({ id, systemManaged: true, memberCount: 2 });
    await patch(path, { op: "Remove", path: "members", value: [{ $ref: null, value: one.id }] });
    expect(await members()).toEqual([two.id]);
    expect((await scim("DELETE", path)).status).toBe(204);
    expect(await failure(scim("GET", path))).toEqual([404, undefined]);
  });
});

describe("a provider that replaces resources, and patches values without a path", () => {
  test("creates, updates, deactivates and takes back a user", async () => {
    const userName = address();
    const user = {
      schemas: [USER],
      userName,
      name: { givenName: "Test", familyName: "User" },
      emails: [{ primary: true, value: userName, type: "work" }],
      displayName: "Test User",
      locale: "en-US",
      externalId: "00ujl29u0le5T6Aj10h7",
      groups: [],
      password: "1mz050nq",
      active: true,
    };
    const page = (await scim("GET", "/Users?startIndex=1&count=2")).body;
    expect([page.itemsPerPage, page.totalResults]).toEqual([1, 1]);
    const created = await scim("POST", "/Users", user);
    expect(created.status).toBe(201);
    expect(JSON.stringify(created.body)).not.toContain(user.password);
    const { id } = created.body;
    const replaced = await scim("PUT", `/Users/${id}`, { ...user, id, displayName: "Another Middle User" });
    expect([replaced.status, replaced.body.displayName]).toEqual([200, "Another Middle User"]);
    const off = await patch(`/Users/${id}`, { op: "replace", value: { active: false } });
    expect([off.status, off.body.active]).toEqual([200, false]);
    const on = await patch(`/Users/${id}`, { op: "replace", value: { active: true } });
    expect(on.body.active).toBe(true);
    expect(await failure(scim("POST", "/Users", user))).toEqual([409, "uniqueness"]);
  });

  test("pushes a group with its members, and patches it by its id", async () => {
    const [one, two, three] = [await createUser(), await createUser(), await createUser()];
    const created = await scim("POST", "/Groups", {
      schemas: [GROUP],
      displayName: "Test SCIMv2",
      members: [{ value: one.id, display: one.userName }],
    });
    expect([created.status, created.body.members.length]).toEqual([201, 1]);
    const { id } = created.body;
    const renamed = await patch(`/Groups/${id}`, {
      op: "replace",
      value: { id, displayName: "Test SCIMv2 renamed" },
    });
    expect(renamed.body.displayName).toBe("Test SCIMv2 renamed");
    const changed = await patch(
      `/Groups/${id}`,
      { op: "remove", path: `members[value eq "${one.id}"]` },
      { op: "add", path: "members", value: [{ value: two.id, display: two.userName }] },
    );
    expect(changed.body.members.map(({ value }: Body) => value)).toEqual([two.id]);
    const members = [one, three].map(({ id: value }) => ({ value }));
    const replaced = await scim("PUT", `/Groups/${id}`, {
      schemas: [GROUP],
      id,
      displayName: "Whole",
      members,
    });
    expect(replaced.body.members.map(({ value }: Body) => value)).toEqual([one.id, three.id]);
  });
});

describe("deactivation", () => {
  test("ends the tokens of the user in this organization, and in no other", async () => {
    const email = address();
    const user = await addMember(server, { organizationId: own.organizationId, email });
    const other = await addOrganization(server, `other-${made}`);
    const there = await addMember(server, { organizationId: other.organizationId, email });
    const works = async ({ token }: TestMember) =>
      (await call("IdentityService/GetAuthenticatedIdentity", {}, token)).status;
    const query = filtered(`userName eq "${email.toUpperCase()}"`);
    const [{ id }] = (await scim("GET", `/Users${query}`)).body.Resources;
    expect(id).toBe(user.userId);
    expect([await works(user), await works(there)]).toEqual([200, 200]);
    await patch(`/Users/${id}`, { op: "replace", value: { active: false } });
    expect([await works(user), await works(there)]).toEqual([401, 200]);
    // The address and the name are those of the other organization, too.
    expect(
      await failure(patch(`/Users/${id}`, { op: "replace", path: "userName", value: address() })),
    ).toEqual([400, "invalidValue"]);
    const renamed = await patch(`/Users/${id}`, { op: "replace", path: "displayName", value: "Mallory" });
    expect([renamed.status, renamed.body.displayName]).toEqual([200, `The person of ${email}`]);
  });

  test("leaves the last administrator, whose address is nobody's to change", async () => {
    expect(
      (await failure(patch(`/Users/${own.userId}`, { op: "replace", value: { active: false } })))[0],
    ).toBe(400);
    expect((await failure(scim("DELETE", `/Users/${own.userId}`)))[0]).toBe(400);
    const hijacked = patch(`/Users/${own.userId}`, { op: "replace", value: { userName: address() } });
    expect(await failure(hijacked)).toEqual([400, "invalidValue"]);
  });

  test("of one who left ends with another POST, under the same id and with no group", async () => {
    const userName = address();
    const { id } = await createUser(userName);
    const group = (await scim("POST", "/Groups", { displayName: "Team", members: [{ value: id }] })).body;
    await scim("DELETE", `/Users/${id}`);
    expect((await createUser(userName)).id).toBe(id);
    expect((await scim("GET", `/Groups/${group.id}`)).body.members).toEqual([]);
  });
});

describe("what a request does not say", () => {
  const status = async (id: string) => (await member(id)).user.status;

  test("suspends nobody who is blocked, and lifts no suspension", async () => {
    const email = address();
    const { userId, accountId } = await addMember(server, { organizationId: own.organizationId, email });
    await ok("AccountService/BlockAccount", { accountId, reason: "lost key" });
    const renamed = await patch(`/Users/${userId}`, { op: "replace", path: "displayName", value: "Else" });
    expect([renamed.status, renamed.body.displayName, renamed.body.active]).toEqual([200, "Else", false]);
    await ok("AccountService/UnblockAccount", { accountId });
    expect(await status(userId)).toBe("USER_STATUS_ACTIVE");
    await ok("UserService/SetSuspended", { userId, suspended: true });
    const replaced = await scim("PUT", `/Users/${userId}`, { userName: email, displayName: "Third" });
    expect([replaced.status, replaced.body.displayName, replaced.body.active]).toEqual([200, "Third", false]);
    expect(await status(userId)).toBe("USER_STATUS_SUSPENDED");
    const active = await scim("PUT", `/Users/${userId}`, { userName: email, active: true });
    expect([active.status, active.body.active]).toEqual([200, true]);
  });
});

describe("an address in another letter case", () => {
  test("is that of the member who has it already", async () => {
    const email = `Mixed.${address()}`;
    const { userId } = await addMember(server, { organizationId: own.organizationId, email });
    const lower = email.toLowerCase();
    expect(await failure(scim("POST", "/Users", { userName: lower }))).toEqual([409, "uniqueness"]);
    const { id } = await createUser();
    const renamed = patch(`/Users/${id}`, { op: "replace", path: "userName", value: lower });
    expect(await failure(renamed)).toEqual([409, "uniqueness"]);
    const off = await patch(`/Users/${userId}`, { op: "replace", value: { userName: lower, active: false } });
    expect([off.status, off.body.userName, off.body.active]).toEqual([200, email, false]);
    // Part of an address finds nobody.
    for (const part of ["", "m", "@", lower.slice(0, -1), lower.slice(1)])
      expect((await scim("GET", `/Users${filtered(`userName eq "${part}"`)}`)).body.totalResults).toBe(0);
  });
});

describe("who provisions", () => {
  test("is a service account that was made for that", async () => {
    const plain = await serviceAccountToken({ name: "Robot" });
    for (const token of [plain, own.token]) {
      expect(await failure(scim("GET", "/Users", undefined, token))).toEqual([403, undefined]);
      expect(await failure(scim("GET", "/ServiceProviderConfig", undefined, token))).toEqual([
        403,
        undefined,
      ]);
      expect(await failure(scim("POST", "/Users", { userName: address() }, token))).toEqual([403, undefined]);
      expect(await failure(scim("POST", "/Groups", { displayName: "Team" }, token))).toEqual([
        403,
        undefined,
      ]);
    }
    for (const token of ["", "cr_sat_wrong"])
      expect(await failure(scim("GET", "/Users", undefined, token))).toEqual([401, undefined]);
    const user = await addMember(server, { organizationId: own.organizationId, email: address() });
    const request = { name: "Mine", validUntil: FAR, provisioning: true };
    const refused = await call("ServiceAccountService/CreateServiceAccount", request, user.token);
    expect(reasonOf(refused)).toBe("PERMISSION_DENIED");
  });

  test("reaches its own organization alone", async () => {
    const user = await createUser();
    const group = (await scim("POST", "/Groups", { displayName: "Team" })).body;
    const foreignAddress = address();
    own = await addOrganization(server, `foreign-${made}`);
    await addMember(server, { organizationId: own.organizationId, email: foreignAddress });
    const foreign = await serviceAccountToken({ name: "Other provider", provisioning: true });
    for (const [method, path, body] of [
      ["GET", `/Users/${user.id}`],
      ["PUT", `/Users/${user.id}`, { userName: user.userName }],
      ["PATCH", `/Users/${user.id}`, { Operations: [{ op: "replace", path: "active", value: false }] }],
      ["DELETE", `/Users/${user.id}`],
      ["GET", `/Groups/${group.id}`],
      ["PUT", `/Groups/${group.id}`, { displayName: "Taken" }],
      [
        "PATCH",
        `/Groups/${group.id}`,
        { Operations: [{ op: "replace", path: "displayName", value: "Taken" }] },
      ],
      ["DELETE", `/Groups/${group.id}`],
    ] as const)
      expect(await failure(scim(method, path, body, foreign))).toEqual([404, undefined]);
    expect(
      (await scim("GET", `/Users${filtered(`userName eq "${user.userName}"`)}`, undefined, foreign)).body,
    ).toMatchObject({ totalResults: 0 });
    const joining = { displayName: "Mixed", members: [{ value: user.id }] };
    expect(await failure(scim("POST", "/Groups", joining, foreign))).toEqual([400, "invalidValue"]);
    // Nobody is taken in who has an account elsewhere.
    expect(await failure(scim("POST", "/Users", { userName: foreignAddress }))).toEqual([409, "uniqueness"]);
  });

  test("is not trusted by the operator of another organization without being told to", async () => {
    const { userName } = await createUser();
    const other = `other-${v7()}`;
    const { organizationId } = await addOrganization(server, other);
    const add = (organization: string, ...more: string[]) =>
      runHostedCommand([
        ...["member", "add", "--email", userName, "--name", "Ann", "--data-dir", server.dataDir],
        ...["--organization", organization, ...more],
      ]);
    const refused = await add(organizationId);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain(`made by SCIM of the organization provisioned-${made}`);
    expect((await add(own.organizationId)).stderr).toContain("is a member of");
    const added = await add(organizationId, "--trust-directory");
    expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^cr_pat_\w+\n$/)]);
  });

  test("changes no group that people made", async () => {
    const { organizationId } = own;
    const { group } = await ok("GroupService/CreateGroup", { organizationId, name: "By hand" });
    expect((await scim("GET", "/Groups")).body.totalResults).toBe(0);
    expect(await failure(scim("DELETE", `/Groups/${group.id}`))).toEqual([404, undefined]);
    expect(await failure(scim("POST", "/Groups", { displayName: "BY HAND" }))).toEqual([409, "uniqueness"]);
  });

  test("is in the audit trail", async () => {
    const { id } = await createUser();
    const { entries } = await ok("EventService/ListAuditLogs", { filter: { subjectIds: [id] } });
    const [entry] = entries;
    expect([entry.action, entry.actorPrincipal]).toEqual(["scim/CreateUser", "PRINCIPAL_SERVICE_ACCOUNT"]);
  });
});

describe("a request", () => {
  test.each<[string, string, unknown, number, string | undefined]>([
    ["GET", `/Users${filtered('userName sw "a"')}`, undefined, 400, "invalidFilter"],
    ["GET", `/Users${filtered("userName eq a")}`, undefined, 400, "invalidFilter"],
    ["GET", `/Groups${filtered('members eq "a"')}`, undefined, 400, "invalidFilter"],
    ["GET", "/Users?count=ten", undefined, 400, "invalidValue"],
    ["GET", "/Users?attributes=id&excludedAttributes=name", undefined, 400, "invalidValue"],
    ["GET", "/Groups?attributes=display%20Name", undefined, 400, "invalidValue"],
    [
      "PATCH",
      `/Users/${v7()}?excludedAttributes=members[value]`,
      { Operations: [{ op: "remove", path: "externalId" }] },
      400,
      "invalidValue",
    ],
    ["POST", "/Users", "{", 400, "invalidSyntax"],
    ["POST", "/Users", [], 400, "invalidSyntax"],
    ["POST", "/Users", {}, 400, "invalidValue"],
    ["POST", "/Users", { userName: "nobody" }, 400, "invalidValue"],
    ["POST", "/Users", { userName: "a@example.org", active: "yes" }, 400, "invalidValue"],
    ["POST", "/Users", { userName: "a\u202e@example.org" }, 400, "invalidValue"],
    ["POST", "/Users", { userName: "a@example.org", displayName: "Ann\u202eelpmaxE" }, 400, "invalidValue"],
    ["POST", "/Users", { userName: "a@example.org", name: { givenName: "A\u{e0041}" } }, 400, "invalidValue"],
    ["POST", "/Groups", { displayName: "Crew\u202d" }, 400, "invalidValue"],
    ["POST", "/Groups", { displayName: "ab" }, 400, "invalidValue"],
    ["POST", "/Groups", { displayName: "a".repeat(81) }, 400, "invalidValue"],
    ["POST", "/Groups", { displayName: "abc", members: [{}] }, 400, "invalidValue"],
    ["PATCH", `/Users/${v7()}`, { Operations: [] }, 400, "invalidValue"],
    ["PATCH", `/Users/${v7()}`, { Operations: [{ op: "move", path: "a" }] }, 400, "invalidValue"],
    ["PATCH", `/Users/${v7()}`, { Operations: [{ op: "remove" }] }, 400, "invalidPath"],
    ["PUT", "/Users", {}, 405, undefined],
    ["DELETE", "/ServiceProviderConfig", undefined, 405, undefined],
    ["GET", "/Bulk", undefined, 404, undefined],
    ["GET", "/constructor", undefined, 404, undefined],
    ["GET", "/Users/a/b", undefined, 404, undefined],
  ])("%s %s of %j answers %d %s", async (method, path, body, status, scimType) => {
    expect(await failure(scim(method, path, body))).toEqual([status, scimType]);
  });

  test.each<
    [string, string | Uint8Array<ArrayBuffer>, Readonly<Record<string, string>>, number, string | undefined]
  >([
    ["of more than 1 MiB", JSON.stringify({ userName: "a".repeat(2_000_000) }), {}, 413, undefined],
    ["of another type", "userName=a", { "content-type": "text/plain" }, 415, undefined],
    ["that is compressed", gzipSync("{}"), { "content-encoding": "gzip" }, 415, undefined],
    ["that is not in UTF-8", Buffer.from('{"displayName":"J\xfcrgen"}', "latin1"), {}, 400, "invalidSyntax"],
  ])("%s is refused, and the next one is answered", async (_, body, header, status, scimType) => {
    expect(await failure(scim("POST", "/Users", body, provisioner, header))).toEqual([status, scimType]);
    expect((await scim("GET", "/Users?count=1")).status).toBe(200);
  });

  test("that creates is answered with the place of what it made", async () => {
    const user = await scim("POST", "/Users", { userName: address() });
    expect(user.location).toBe(`${server.url}/scim/v2/Users/${user.body.id}`);
    const group = await scim("POST", "/Groups", { displayName: `Placed ${v7()}` });
    expect(group.location).toBe(`${server.url}/scim/v2/Groups/${group.body.id}`);
  });

  test("names a user with 255 characters at most, also part by part", async () => {
    const { id } = await createUser();
    const part = (value: string) => ({ op: "replace", path: "name.givenName", value });
    const family = { op: "replace", path: "name.familyName", value: "b".repeat(54) };
    const named = await patch(`/Users/${id}`, part("a".repeat(200)), family);
    expect([named.status, named.body.displayName.length]).toEqual([200, 255]);
    expect(await failure(patch(`/Users/${id}`, part("a".repeat(201))))).toEqual([400, "invalidValue"]);
    const growing = Array.from({ length: 10 }, () => part("a ".repeat(50)));
    expect(await failure(patch(`/Users/${id}`, ...growing))).toEqual([400, "invalidValue"]);
  });

  test("is answered in pages that count from 1", async () => {
    const ids: string[] = [own.userId];
    for (let each = 0; each < 4; each++) ids.push((await createUser()).id);
    const page = async (query: string) => {
      const { body } = await scim("GET", `/Users${query}`);
      return [
        body.startIndex,
        body.itemsPerPage,
        body.totalResults,
        body.Resources.map(({ id }: Body) => id),
      ];
    };
    expect(await page("?startIndex=2&count=2")).toEqual([2, 2, 5, ids.slice(1, 3)]);
    expect(await page("?startIndex=5&count=2")).toEqual([5, 1, 5, ids.slice(4)]);
    expect(await page("?startIndex=-3&count=0")).toEqual([1, 0, 5, []]);
    expect(await page("?startIndex=6")).toEqual([6, 0, 5, []]);
    expect(await page("?startIndex=0&count=-1")).toEqual([1, 0, 5, []]);
    for (const most of ["9999", "99999999999999999999"])
      expect(await page(`?count=${most}`)).toEqual([1, 5, 5, ids]);
    expect(await page("?startIndex=99999999999999999999")).toEqual([2 ** 31, 0, 5, []]);
  });

  test("returns the attributes of a user that it asks for, and always its id and schemas", async () => {
    const user = await createUser(address(), { displayName: "Ann Example", externalId: "ann" });
    const { id, schemas, userName } = user;
    const get = async (query: string) => (await scim("GET", `/Users/${id}?${query}`)).body;
    expect(await get("attributes=USERNAME, externalid")).toEqual({
      schemas,
      id,
      userName,
      externalId: "ann",
    });
    expect(await get(`attributes=${USER}:userName,emails.value,nothing`)).toEqual({
      schemas,
      id,
      userName,
      emails: [{ value: userName }],
    });
    expect(await get("attributes=name.familyName")).toEqual({ schemas, id, name: {} });
    const { displayName: _, active: __, ...others } = user;
    const excluded = await get("excludedAttributes=id,schemas,displayName,active,emails.type,emails.primary");
    expect(excluded).toEqual({ ...others, emails: [{ value: userName }] });
    expect(await get("attributes=")).toEqual(user);
    const list = await scim("GET", `/Users${filtered('externalId eq "ann"')}&attributes=active`);
    expect(list.body.Resources).toEqual([{ schemas, id, active: true }]);
    const changed = await scim("PATCH", `/Users/${id}?attributes=active`, {
      schemas: [PATCH],
      Operations: [{ op: "replace", path: "active", value: false }],
    });
    expect(changed.body).toEqual({ schemas, id, active: false });
    const other = await scim("POST", "/Users?attributes=active", { userName: address() });
    expect([other.location, other.body]).toEqual([
      `${server.url}/scim/v2/Users/${other.body.id}`,
      { schemas, id: other.body.id, active: true },
    ]);
  });

  test("returns the attributes of a group that it asks for", async () => {
    const user = await createUser();
    const displayName = `Chosen ${v7()}`;
    const members = [{ value: user.id }];
    const { id, schemas } = (await scim("POST", "/Groups", { displayName, members })).body;
    const get = async (query: string) => (await scim("GET", `/Groups/${id}?${query}`)).body;
    expect(await get("attributes=displayName")).toEqual({ schemas, id, displayName });
    expect(await get("attributes=members.value")).toEqual({ schemas, id, members });
    expect(Object.keys(await get("excludedAttributes=members,meta"))).toEqual([
      "schemas",
      "id",
      "displayName",
    ]);
    const [listed] = (await scim("GET", `/Groups${filtered(`id eq "${id}"`)}&attributes=members`)).body
      .Resources;
    expect(listed).toEqual({
      schemas,
      id,
      members: [expect.objectContaining({ value: user.id, type: "User" })],
    });
  });

  test.each([
    ["replaces members by null", { op: "replace", path: "members", value: null }],
    ["replaces members by an empty list", { op: "replace", path: "members", value: [] }],
    ["replaces members by null without a path", { op: "replace", value: { members: null } }],
    ["removes members", { op: "remove", path: "members" }],
    ["removes members, with null as the value", { op: "remove", path: "members", value: null }],
  ])("that %s empties a group", async (_, operation) => {
    const members = [{ value: (await createUser()).id }, { value: (await createUser()).id }];
    const { id } = (await scim("POST", "/Groups", { displayName: `Emptied ${v7()}`, members })).body;
    const { status, body } = await patch(`/Groups/${id}`, operation);
    expect([status, body.members]).toEqual([200, []]);
  });

  test("that adds or removes no members changes none, and none removes a name", async () => {
    const members = [{ value: (await createUser()).id }];
    const { id } = (await scim("POST", "/Groups", { displayName: `Kept ${v7()}`, members })).body;
    for (const op of ["add", "remove"])
      expect((await patch(`/Groups/${id}`, { op, path: "members", value: [] })).body.members).toHaveLength(1);
    const added = await patch(`/Groups/${id}`, { op: "add", path: "members", value: null });
    expect(added.body.members).toHaveLength(1);
    for (const [path, attribute] of [
      [`/Groups/${id}`, "displayName"],
      [`/Users/${members[0]?.value}`, "userName"],
    ] as const)
      expect(await failure(patch(path, { op: "remove", path: attribute }))).toEqual([400, "mutability"]);
  });

  test("of discovery is answered", async () => {
    const get = async (path: string) => (await scim("GET", path)).body;
    expect(await get("/ServiceProviderConfig")).toMatchObject({
      patch: { supported: true },
      bulk: { supported: false },
      filter: { supported: true, maxResults: 200 },
    });
    const types = await get("/ResourceTypes");
    expect(types.Resources.map(({ id, endpoint }: Body) => [id, endpoint])).toEqual([
      ["User", "/Users"],
      ["Group", "/Groups"],
    ]);
    expect(await get("/ResourceTypes/User")).toMatchObject({ schema: USER });
    expect((await get("/Schemas")).Resources.map(({ id }: Body) => id)).toEqual([USER, GROUP]);
    expect(await get(`/Schemas/${USER}`)).toMatchObject({ name: "User" });
    expect(await failure(scim("GET", "/Schemas/other"))).toEqual([404, undefined]);
  });
});

describe("with restrictAccountCreationToScim", () => {
  test("nobody joins by an invite, and SCIM creates users", async () => {
    const { organizationId } = own;
    const { invite } = await ok("OrganizationService/CreateOrganizationInvite", { organizationId });
    const elsewhere = await addOrganization(server, `elsewhere-${made}`);
    const restrict = (restrictAccountCreationToScim: boolean) =>
      ok("OrganizationService/UpdateOrganizationPolicies", { organizationId, restrictAccountCreationToScim });
    const join = () =>
      call("OrganizationService/JoinOrganization", { inviteId: invite.inviteId }, elsewhere.token);
    await restrict(true);
    expect(reasonOf(await join())).toBe("PERMISSION_DENIED");
    await createUser();
    await restrict(false);
    expect((await join()).status).toBe(200);
  });
});
