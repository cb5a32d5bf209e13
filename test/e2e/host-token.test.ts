import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { addMember, besideServer, type TestMember } from "../harness/member.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";

const SERVICE = "RunnerConfigurationService";
const HOUR_MS = 3_600_000;

let server: TestServer;
let organizationId: string;
let administrator: string;
let member: TestMember;
let runnerId: string;
beforeAll(async () => {
  server = await startServer();
  const identity = await ok(call("IdentityService/GetAuthenticatedIdentity", {}));
  organizationId = identity.organizationId;
  administrator = identity.subject.id;
  member = await addMember(server, { organizationId, email: "member@localhost" });
  runnerId = await newRunner("In the attic");
});
afterAll(stopAll);

const call = (operation: string, body: unknown, token = server.token) => post(server, operation, body, token);

async function ok(answer: Promise<Answer>): Promise<Answer["body"]> {
  const { status, body } = await answer;
  expect([status, body]).toEqual([200, body]);
  return body;
}

async function newRunner(name: string): Promise<string> {
  return (await ok(call("RunnerService/CreateRunner", { name }))).runner.runnerId;
}

const create = (body: object, token?: string) =>
  call(
    `${SERVICE}/CreateHostAuthenticationToken`,
    { runnerId, host: `${v7()}.example.org`, token: "value", ...body },
    token,
  );
const created = async (body: object, token?: string) => (await ok(create(body, token))).token;
const get = (id: string, token?: string) => call(`${SERVICE}/GetHostAuthenticationToken`, { id }, token);
const update = (id: string, body: object, token?: string) =>
  call(`${SERVICE}/UpdateHostAuthenticationToken`, { id, ...body }, token);
const remove = (id: string, token?: string) =>
  call(`${SERVICE}/DeleteHostAuthenticationToken`, { id }, token);
const list = async (filter: object, token?: string) => {
  const request = { pagination: { pageSize: 100 }, filter };
  const { tokens } = await ok(call(`${SERVICE}/ListHostAuthenticationTokens`, request, token));
  return tokens.map(({ id }: { id: string }) => id);
};

function expectRefused(answer: Answer, status: number, reason: string, told?: RegExp): void {
  expect([answer.status, reasonOf(answer)]).toEqual([status, reason]);
  if (told) expect(answer.body.message).toMatch(told);
}

/** The record of one resource, oldest first. */
function recordOf(id: string) {
  return besideServer(server, async (store) => {
    const rows = await store.reader
      .selectFrom("audit_log")
      .select(["operation", "diff", "actor_id", "subject_type"])
      .where("subject_id", "=", id)
      .orderBy("sequence")
      .execute();
    const events = await store.reader
      .selectFrom("event")
      .select("kind")
      .where("resource_id", "=", id)
      .orderBy("sequence")
      .execute();
    return {
      rows: rows.map(({ diff, ...row }) => ({ ...row, diff: JSON.parse(diff) })),
      kinds: events.map(({ kind }) => kind),
    };
  });
}

const user = (id: string) => ({ id, principal: "PRINCIPAL_USER" });

describe("a host token", () => {
  test("is answered without its values, with the host in lower case", async () => {
    const expiresAt = new Date(Date.now() + HOUR_MS).toISOString();
    const integrationId = v7();
    const answer = await create({
      host: "Git.Example.ORG",
      token: "the credential",
      refreshToken: "the refresher",
      expiresAt,
      integrationId: integrationId.toUpperCase(),
      scopes: ["repo", "", "read:user"],
      source: "HOST_AUTHENTICATION_TOKEN_SOURCE_OAUTH",
    });
    expect(JSON.stringify(answer.body)).not.toMatch(/credential|refresher/);
    const { token } = answer.body;
    expect(token).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      runnerId,
      userId: administrator,
      host: "git.example.org",
      source: "HOST_AUTHENTICATION_TOKEN_SOURCE_OAUTH",
      expiresAt,
      integrationId,
      scopes: ["repo", "", "read:user"],
      subject: user(administrator),
    });
    expect((await get(token.id.toUpperCase())).body).toEqual({ token });
  });

  test.each([
    ["a personal access token of the host", {}, "PAT"],
    ["one of an authorization with a refresh token", { refreshToken: "r" }, "OAUTH"],
    ["what it says, with a refresh token too", { refreshToken: "r", source: 2 }, "PAT"],
    ["what it says, without one too", { source: 1 }, "OAUTH"],
  ])("is taken for %s", async (_, body, source) => {
    expect((await created(body)).source).toBe(`HOST_AUTHENTICATION_TOKEN_SOURCE_${source}`);
  });

  test("belongs to the caller, to the deprecated user or to the subject, whichever is named", async () => {
    const own = user(member.userId);
    for (const body of [{}, { userId: member.userId }, { subject: own }, { userId: own.id, subject: own }]) {
      const token = await created(body, member.token);
      expect([token.subject, token.userId]).toEqual([own, own.id]);
    }
  });

  test("may belong to a service account, and then names no user", async () => {
    const validUntil = new Date(Date.now() + HOUR_MS).toISOString();
    const made = await ok(
      call("ServiceAccountService/CreateServiceAccount", { name: "Nightly", validUntil }),
    );
    const subject = { id: made.serviceAccount.id, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
    const token = await created({ subject });
    expect([token.subject, token.userId]).toEqual([subject, ""]);
    const issued = await ok(
      call("ServiceAccountService/CreateServiceAccountToken", { serviceAccountId: subject.id }),
    );
    expect(await list({}, issued.token)).toEqual([token.id]);
    expect((await created({}, issued.token)).subject).toEqual(subject);
  });

  test("takes 101 scopes and no more", async () => {
    const scopes = Array.from({ length: 102 }, (_, index) => `scope ${index}`);
    expect((await created({ scopes: scopes.slice(1) })).scopes).toHaveLength(101);
    expectRefused(await create({ scopes }), 400, "CONSTRAINT_VIOLATED");
  });

  test("is refused where what it names is wrong, in words that say what", async () => {
    const other = user(member.userId);
    const wrong: [object, number, string, RegExp][] = [
      [{ subject: other, userId: administrator }, 400, "VALUE_UNUSABLE", /userId and subject name different/],
      [
        { subject: { id: administrator, principal: "PRINCIPAL_SERVICE_ACCOUNT" }, userId: administrator },
        400,
        "VALUE_UNUSABLE",
        /different subjects/,
      ],
      [
        { subject: { id: runnerId, principal: "PRINCIPAL_RUNNER" } },
        400,
        "VALUE_UNUSABLE",
        /belong to users and/,
      ],
      [{ subject: { id: administrator } }, 400, "VALUE_UNUSABLE", /belong to users and service accounts/],
      [{ subject: { principal: "PRINCIPAL_USER" } }, 400, "VALUE_UNUSABLE", /needs an id/],
      [{ subject: user(v7()) }, 404, "NOT_FOUND", /^user not found$/],
      [{ userId: v7() }, 404, "NOT_FOUND", /^user not found$/],
      [
        { subject: { id: v7(), principal: "PRINCIPAL_SERVICE_ACCOUNT" } },
        404,
        "NOT_FOUND",
        /^service account not/,
      ],
      [{ runnerId: v7() }, 404, "NOT_FOUND", /^runner not found$/],
      [
        { expiresAt: new Date(Date.now() - 1_000).toISOString() },
        400,
        "VALUE_UNUSABLE",
        /^expiresAt has passed/,
      ],
      [{ token: "" }, 400, "CONSTRAINT_VIOLATED", /\[token\]/],
      [{ token: "x".repeat(16_385) }, 400, "CONSTRAINT_VIOLATED", /\[token\]/],
      [{ host: "" }, 400, "CONSTRAINT_VIOLATED", /\[host\]/],
    ];
    for (const [body, status, reason, told] of wrong) {
      expectRefused(await create(body), status, reason, told);
    }
  });
});

describe("one runner, host and subject", () => {
  test("have one token: a new one takes the place of the former, in one commit with both in the record", async () => {
    const host = "replaced.example.org";
    const former = await created({ host, token: "former" });
    const latter = await created({ host: "REPLACED.example.org", token: "latter" });
    expect(latter.id).not.toBe(former.id);
    expectRefused(await get(former.id), 404, "NOT_FOUND");
    expect((await get(latter.id)).status).toBe(200);
    expect((await recordOf(former.id)).kinds).toEqual(["created", "deleted"]);
    const { rows, kinds } = await recordOf(latter.id);
    expect(kinds).toEqual(["created"]);
    expect(rows[0]).toMatchObject({
      operation: `service.v1.${SERVICE}/CreateHostAuthenticationToken`,
      actor_id: administrator,
      subject_type: "host_token",
      diff: { host: [null, "replaced.example.org"], token: [null, "(secret)"] },
    });
    expect(rows[0]?.diff).not.toHaveProperty("refreshToken");
  });

  test("have another when one of the three is another", async () => {
    const host = "shared.example.org";
    const elsewhere = await newRunner("In the cellar");
    const tokens = [
      await created({ host }),
      await created({ host, subject: user(member.userId) }),
      await created({ host, runnerId: elsewhere }),
      await created({ host: "other.example.org" }),
    ];
    for (const { id } of tokens) expect((await get(id)).status).toBe(200);
  });

  test("have exactly one after fifty callers stored one at once", async () => {
    const host = "busy.example.org";
    const all = await Promise.all(Array.from({ length: 50 }, () => created({ host })));
    const statuses = await Promise.all(all.map(async ({ id }) => (await get(id)).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });
});

describe("a host token of another", () => {
  test("is made, seen, changed and deleted by administrators", async () => {
    const { id, subject } = await created({ subject: user(member.userId) });
    expect(subject).toEqual(user(member.userId));
    expect((await get(id)).status).toBe(200);
    expect(await list({ subjectId: member.userId })).toContain(id);
    await ok(update(id, { scopes: ["repo"] }));
    await ok(remove(id));
    expectRefused(await remove(id), 404, "NOT_FOUND");
  });

  test("is out of reach for a member, who has its own", async () => {
    const { id } = await created({});
    const denied: [string, Answer][] = [
      ["create", await create({ subject: user(administrator) }, member.token)],
      ["create", await create({ userId: administrator }, member.token)],
      ["create", await create({ userId: v7() }, member.token)],
      ["get", await get(id, member.token)],
      ["update", await update(id, { token: "mine" }, member.token)],
      ["delete", await remove(id, member.token)],
    ];
    for (const [verb, answer] of denied) {
      expectRefused(answer, 403, "PERMISSION_DENIED");
      const { metadata } = answer.body.details[0].debug;
      expect(metadata).toEqual({ permission: `${verb}_host_authentication_token` });
    }
    expect(await list({ subjectId: administrator }, member.token)).toEqual([]);
    expect(await list({}, member.token)).not.toContain(id);
    expect((await get(id)).status).toBe(200);
    const own = await created({}, member.token);
    expect(await list({}, member.token)).toContain(own.id);
    await ok(update(own.id, { token: "another" }, member.token));
    await ok(remove(own.id, member.token));
  });
});

describe("a list of host tokens", () => {
  test("comes by creation, a page at a time, narrowed by runner, user and subject", async () => {
    const runner = await newRunner("For lists");
    const made: string[] = [];
    for (const body of [{}, { subject: user(member.userId) }, {}, {}]) {
      made.push((await created({ runnerId: runner, ...body })).id);
    }
    expect(await list({ runnerId: runner })).toEqual(made);
    expect(await list({ runnerId: runner, userId: member.userId })).toEqual([made[1]]);
    expect(await list({ runnerId: runner, subjectId: administrator })).toEqual(
      made.filter((_, index) => index !== 1),
    );
    expect(await list({ userId: member.userId, subjectId: administrator })).toEqual([]);
    const page = (token: string, as = server.token) =>
      call(
        `${SERVICE}/ListHostAuthenticationTokens`,
        { pagination: { pageSize: 3, token }, filter: { runnerId: runner } },
        as,
      );
    const first = await ok(page(""));
    expect(first.tokens.map(({ id }: { id: string }) => id)).toEqual(made.slice(0, 3));
    const second = await ok(page(first.pagination.nextToken));
    expect([second.tokens[0].id, second.pagination.nextToken]).toEqual([made[3], ""]);
    expectRefused(await page(first.pagination.nextToken, member.token), 400, "PAGE_TOKEN_INVALID");
  });
});

describe("an update", () => {
  test("replaces what is present and leaves the rest", async () => {
    const expiresAt = new Date(Date.now() + HOUR_MS).toISOString();
    const before = await created({ refreshToken: "r", scopes: ["a"], expiresAt });
    await ok(update(before.id, { token: "new" }));
    expect((await get(before.id)).body.token).toEqual(before);
    const later = new Date(Date.now() + 2 * HOUR_MS).toISOString();
    await ok(update(before.id, { expiresAt: later, scopes: ["b", "c"] }));
    expect((await get(before.id)).body.token).toEqual({ ...before, expiresAt: later, scopes: ["b", "c"] });
    const { rows, kinds } = await recordOf(before.id);
    expect(kinds).toEqual(["created", "updated", "updated"]);
    expect(rows[1]?.diff).toEqual({ token: ["(secret)", "(new secret)"] });
    expect(Object.keys(rows[2]?.diff).toSorted()).toEqual(["expiresAt", "scopes"]);
  });

  test("removes what its mask names, and a refresh token that is empty", async () => {
    const expiresAt = new Date(Date.now() + HOUR_MS).toISOString();
    const { id } = await created({ refreshToken: "r", scopes: ["a"], expiresAt });
    await ok(update(id, { updateMask: "scopes,expiresAt,refreshToken" }));
    const { token } = (await get(id)).body;
    expect([token.scopes, token.expiresAt]).toEqual([[], undefined]);
    await ok(update(id, { refreshToken: "r2" }));
    await ok(update(id, { refreshToken: "" }));
    const { rows } = await recordOf(id);
    expect(rows.slice(1).map(({ diff }) => diff.refreshToken)).toEqual([
      ["(secret)", null],
      [null, "(new secret)"],
      ["(secret)", null],
    ]);
  });

  test("empties the scopes for an explicit empty list in JSON, and leaves them when there is none", async () => {
    const { id } = await created({ scopes: ["a"] });
    await ok(update(id, { refreshToken: "r" }));
    expect((await get(id)).body.token.scopes).toEqual(["a"]);
    await ok(update(id, { scopes: [] }));
    expect((await get(id)).body.token.scopes).toEqual([]);
  });

  test("that changes nothing leaves no trace", async () => {
    const { id } = await created({ scopes: ["a"] });
    await ok(update(id, { scopes: ["a"] }));
    await ok(update(id, {}));
    expect((await recordOf(id)).kinds).toEqual(["created"]);
  });

  test("is refused for an expiry that has passed and for a mask that removes the token", async () => {
    const { id } = await created({});
    const past = new Date(Date.now() - 1_000).toISOString();
    expectRefused(await update(id, { expiresAt: past }), 400, "VALUE_UNUSABLE", /^expiresAt has passed/);
    for (const updateMask of ["token", "id", "updateMask", "host", "nothing", "scopes.x"]) {
      expectRefused(await update(id, { updateMask }), 400, "FIELD_MASK_INVALID");
    }
    await ok(update(id, { token: "new", updateMask: "token,scopes" }));
    expectRefused(await update(id, { token: "" }), 400, "CONSTRAINT_VIOLATED");
  });
});

test("a runner that is deleted takes its host tokens with it", async () => {
  const runner = await newRunner("Short-lived");
  const { id } = await created({ runnerId: runner });
  await ok(call("RunnerService/DeleteRunner", { runnerId: runner }));
  expectRefused(await get(id), 404, "NOT_FOUND");
  expect((await recordOf(id)).kinds).toEqual(["created", "deleted"]);
});
