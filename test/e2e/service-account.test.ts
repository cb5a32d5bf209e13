import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { timestampJson } from "../harness/timestamp.ts";

const FAR = "2999-12-31T00:00:00Z";
const DAY_MS = 24 * 3600 * 1000;

let server: ReachableServer;
let member: TestMember;
let administratorId: string;
beforeAll(async () => {
  server = await startHostedServer();
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
  administratorId = body.subject.id;
  member = await addMember(server, { organizationId: body.organizationId, email: "member@example.org" });
});
afterAll(stopAll);

type Body = Answer["body"];

const call = (operation: string, body: object = {}, token?: string) =>
  post(server, `ServiceAccountService/${operation}`, body, token);
const create = async (body: object = {}): Promise<Body> => {
  const answer = await call("CreateServiceAccount", { name: "robot", validUntil: FAR, ...body });
  expect(answer.status).toBe(200);
  return answer.body.serviceAccount;
};
const mint = async (body: object, token?: string): Promise<Body> => {
  const answer = await call("CreateServiceAccountToken", body, token);
  expect(answer.status).toBe(200);
  return answer.body;
};
const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const DENIED = [403, "permission_denied", "PERMISSION_DENIED"];
const ABSENT = [404, "not_found", "NOT_FOUND"];
const CLOSED = [401, "unauthenticated", "UNAUTHENTICATED"];

describe("a service account", () => {
  test("is made by administrators and read by every member", async () => {
    const made = await create({ name: "Nightly", description: "builds" });
    expect(made).toMatchObject({
      name: "Nightly",
      description: "builds",
      creator: { id: administratorId, principal: "PRINCIPAL_USER" },
      validUntil: FAR,
      suspended: false,
      systemManaged: false,
    });
    const request = { filter: { serviceAccountIds: [made.id] } };
    expect((await call("ListServiceAccounts", request, member.token)).body.serviceAccounts).toEqual([made]);
    expect(refusal(await call("CreateServiceAccount", { name: "x", validUntil: FAR }, member.token))).toEqual(
      DENIED,
    );
    expect(refusal(await call("DeleteServiceAccount", { serviceAccountId: made.id }, member.token))).toEqual(
      DENIED,
    );
  });

  test("needs a time to come and a name", async () => {
    const past = timestampJson(Date.now() - 1);
    expect(refusal(await call("CreateServiceAccount", { name: "x", validUntil: past }))).toEqual([
      400,
      "invalid_argument",
      "VALUE_UNUSABLE",
    ]);
    expect((await call("CreateServiceAccount", { name: "x" })).status).toBe(400);
    expect((await call("CreateServiceAccount", { name: "", validUntil: FAR })).status).toBe(400);
  });

  test("is found by its name without regard to case and by its id", async () => {
    const { id } = await create({ name: "Überprüfer" });
    const search = async (text: string) =>
      (await call("ListServiceAccounts", { filter: { search: text } })).body.serviceAccounts.map(
        (each: Body) => each.id,
      );
    expect(await search("überPRÜF")).toEqual([id]);
    expect(await search(id.slice(10).toUpperCase())).toEqual([id]);
    expect(await search("nobody has this name")).toEqual([]);
  });

  test("acts as a member: makes, and changes only what it made", async () => {
    const { id } = await create();
    const { token } = await mint({ serviceAccountId: id });
    const identity = await post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);
    expect(identity.body.subject).toEqual({ id, principal: "PRINCIPAL_SERVICE_ACCOUNT" });
    const initializer = repository("https://git.example.org/a");
    const own = await post(server, "ProjectService/CreateProject", { initializer }, token);
    expect(own.body.project.metadata.creator).toEqual({ id, principal: "PRINCIPAL_SERVICE_ACCOUNT" });
    const others = await post(server, "ProjectService/CreateProject", { initializer });
    const rename = (project: Body) =>
      post(server, "ProjectService/UpdateProject", { projectId: project.id, name: "renamed" }, token);
    expect((await rename(own.body.project)).status).toBe(200);
    expect(refusal(await rename(others.body.project))).toEqual(DENIED);
    const pat = await post(server, "UserService/CreatePersonalAccessToken", {}, token);
    expect(refusal(pat)).toEqual(DENIED);
  });

  test("can be the executor of a project's prebuilds", async () => {
    const { id } = await create();
    const executor = { id, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
    const initializer = repository("https://git.example.org/a");
    const request = (who: object) => ({
      initializer,
      prebuildConfiguration: { enabled: true, executor: who },
    });
    const made = await post(server, "ProjectService/CreateProject", request(executor));
    expect(made.body.project.prebuildConfiguration.executor).toEqual(executor);
    const absent = await post(server, "ProjectService/CreateProject", request({ ...executor, id: v7() }));
    expect([absent.status, absent.body.message]).toEqual([404, "service account not found"]);
  });

  test("takes its tokens with it when it is deleted, and leaves what it made", async () => {
    const { id } = await create();
    const { token } = await mint({ serviceAccountId: id });
    const made = await post(
      server,
      "ProjectService/CreateProject",
      { initializer: repository("https://git.example.org/a") },
      token,
    );
    expect((await call("DeleteServiceAccount", { serviceAccountId: id })).body).toEqual({});
    expect(refusal(await call("ListServiceAccounts", {}, token))).toEqual(CLOSED);
    expect(refusal(await call("DeleteServiceAccount", { serviceAccountId: id }))).toEqual(ABSENT);
    const kept = await post(server, "ProjectService/GetProject", { projectId: made.body.project.id });
    expect(kept.body.project.metadata.creator.id).toBe(id);
  });

  test("is suspended once its time has come, with its tokens", async () => {
    const validUntil = timestampJson(Date.now() + DAY_MS);
    const { id } = await create({ name: "short-lived", validUntil });
    const { token, serviceAccountToken } = await mint({ serviceAccountId: id });
    expect(serviceAccountToken.expiresAt).toBe(validUntil);
    expect((await call("ListServiceAccounts", {}, token)).status).toBe(200);
    await withServerData(server, (store) =>
      store.write(SYSTEM, "test", ({ db, now }) =>
        builderOf(db).updateTable("service_account").set({ valid_until: now }).where("id", "=", id).execute(),
      ),
    );
    expect(refusal(await call("ListServiceAccounts", {}, token))).toEqual(CLOSED);
    const filter = { serviceAccountIds: [id] };
    expect((await call("ListServiceAccounts", { filter })).body.serviceAccounts).toEqual([]);
    const all = await call("ListServiceAccounts", { filter: { ...filter, includeSuspended: true } });
    expect(all.body.serviceAccounts).toMatchObject([{ id, suspended: true }]);
    expect(refusal(await call("CreateServiceAccountToken", { serviceAccountId: id }))).toEqual([
      400,
      "failed_precondition",
      "PHASE_UNSUITABLE",
    ]);
  });
});

describe("a service account's token", () => {
  const lengthOf = ({ createdAt, expiresAt }: Body) => Date.parse(expiresAt) - Date.parse(createdAt);

  test("holds 30 days when nothing is said, as long as is asked, and never longer than its account", async () => {
    const { id } = await create();
    const made = await mint({ serviceAccountId: id });
    expect(made.token).toMatch(/^cr_sat_[0-9A-Za-z]{36}$/);
    expect(lengthOf(made.serviceAccountToken)).toBe(30 * DAY_MS);
    const asked = await mint({ serviceAccountId: id, validFor: "60s", description: "a minute" });
    expect([lengthOf(asked.serviceAccountToken), asked.serviceAccountToken.description]).toEqual([
      60_000,
      "a minute",
    ]);
    const long = await mint({ serviceAccountId: id, validFor: "2524608000s" });
    expect(lengthOf(long.serviceAccountToken)).toBe(2_524_608_000_000);
    const bound = await create({ validUntil: timestampJson(Date.now() + DAY_MS) });
    const cut = await mint({ serviceAccountId: bound.id });
    expect(cut.serviceAccountToken.expiresAt).toBe(bound.validUntil);
  });

  test("is made for oneself by a service account, in the name of who made the token it used", async () => {
    const { id } = await create();
    const first = await mint({ serviceAccountId: id });
    const second = await mint({ description: "of my own" }, first.token);
    expect(second.serviceAccountToken).toMatchObject({
      serviceAccountId: id,
      creator: { id: administratorId, principal: "PRINCIPAL_USER" },
    });
    const other = await create();
    expect(
      refusal(await call("CreateServiceAccountToken", { serviceAccountId: other.id }, first.token)),
    ).toEqual(DENIED);
    expect(refusal(await call("CreateServiceAccountToken", { serviceAccountId: v7() }, first.token))).toEqual(
      ABSENT,
    );
    expect(refusal(await call("CreateServiceAccountToken"))).toEqual([
      400,
      "invalid_argument",
      "VALUE_UNUSABLE",
    ]);
    expect(refusal(await call("CreateServiceAccountToken", { serviceAccountId: id }, member.token))).toEqual(
      DENIED,
    );
  });

  test("is listed to administrators, to itself, and to a member only when that made it", async () => {
    const { id } = await create();
    const other = await create();
    const { token } = await mint({ serviceAccountId: id });
    await mint({ serviceAccountId: other.id });
    const listed = async (request: object, as?: string) =>
      (await call("ListServiceAccountTokens", request, as)).body.tokens;
    const seen = await listed({ serviceAccountId: id });
    expect(seen).toMatchObject([{ serviceAccountId: id }]);
    expect(JSON.stringify(seen)).not.toContain("cr_sat_");
    expect((await listed({})).length).toBeGreaterThan(1);
    // When a token was used is written apart from the call that it made.
    let own: Body;
    do own = await listed({}, token);
    while (own[0].lastUsed === undefined);
    expect(own.map((each: Body) => each.serviceAccountId)).toEqual([id]);
    expect(Date.now() - Date.parse(own[0].lastUsed)).toBeLessThan(60_000);
    expect(await listed({}, member.token)).toEqual([]);
    expect(refusal(await call("ListServiceAccountTokens", { serviceAccountId: other.id }, token))).toEqual(
      DENIED,
    );
    expect(refusal(await call("ListServiceAccountTokens", { serviceAccountId: v7() }))).toEqual(ABSENT);
  });

  test("is deleted by administrators and by itself, and refused at once", async () => {
    const { id } = await create();
    const [first, second] = [await mint({ serviceAccountId: id }), await mint({ serviceAccountId: id })];
    const remove = (made: Body, as?: string) =>
      call("DeleteServiceAccountToken", { serviceAccountTokenId: made.serviceAccountToken.id }, as);
    expect(refusal(await remove(first, member.token))).toEqual(DENIED);
    expect((await remove(first)).body).toEqual({});
    expect(refusal(await call("ListServiceAccounts", {}, first.token))).toEqual(CLOSED);
    expect(refusal(await remove(first))).toEqual(ABSENT);
    expect((await remove(second, second.token)).status).toBe(200);
    expect(refusal(await call("ListServiceAccounts", {}, second.token))).toEqual(CLOSED);
  });

  test("that an administrator made stays its to see and delete as a member", async () => {
    const { organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body;
    const person = await addMember(server, {
      organizationId,
      email: "former@example.org",
      administrator: true,
    });
    const { id } = await create();
    const made = await mint({ serviceAccountId: id }, person.token);
    const role = "ORGANIZATION_ROLE_MEMBER";
    await post(server, "OrganizationService/SetRole", { organizationId, userId: person.userId, role });
    const listed = await call("ListServiceAccountTokens", {}, person.token);
    expect(listed.body.tokens.map((each: Body) => each.id)).toEqual([made.serviceAccountToken.id]);
    const request = { serviceAccountTokenId: made.serviceAccountToken.id };
    expect((await call("DeleteServiceAccountToken", request, person.token)).status).toBe(200);
  });
});
