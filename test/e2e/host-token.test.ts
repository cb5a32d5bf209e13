import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import type { Answer } from "../harness/call.ts";
import {
  auditTrailOf,
  expectRefused,
  type HostTokenCalls,
  hostTokenCalls,
  ok,
  SERVICE,
} from "../harness/host-token.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { timestampJson } from "../harness/timestamp.ts";

const HOUR_MS = 3_600_000;

let server: ReachableServer;
let organizationId: string;
let administrator: string;
let member: TestMember;
let runnerId: string;
let hostTokens: HostTokenCalls;
beforeAll(async () => {
  server = await startHostedServer();
  hostTokens = await hostTokenCalls(server);
  ({ runnerId } = hostTokens);
  const identity = await ok(hostTokens.call("IdentityService/GetAuthenticatedIdentity", {}));
  organizationId = identity.organizationId;
  administrator = identity.subject.id;
  member = await addMember(server, { organizationId, email: "member@localhost" });
});
afterAll(stopAll);

const user = (id: string) => ({ id, principal: "PRINCIPAL_USER" });

describe("a host token", () => {
  test("is answered without its values, with the host in lower case", async () => {
    const expiresAt = timestampJson(Date.now() + HOUR_MS);
    const integrationId = v7();
    const answer = await hostTokens.create({
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
    expect((await hostTokens.get(token.id.toUpperCase())).body).toEqual({ token });
  });

  test("has no control characters, such as the end of a line that was read with it", async () => {
    for (const body of [{ token: "secret\n" }, { token: "secret", refreshToken: "re\u0000fresh" }]) {
      const answer = await hostTokens.create(body);
      expectRefused(answer, 400, "CONSTRAINT_VIOLATED", /^a token must not contain control characters/);
      expect(JSON.stringify(answer.body)).not.toMatch(/secret|fresh\b/);
    }
  });

  test.each([
    ["a personal access token of the host", {}, "PAT"],
    ["one of an authorization with a refresh token", { refreshToken: "r" }, "OAUTH"],
    ["what it says, with a refresh token too", { refreshToken: "r", source: 2 }, "PAT"],
    ["what it says, without one too", { source: 1 }, "OAUTH"],
  ])("is taken for %s", async (_, body, source) => {
    expect((await hostTokens.created(body)).source).toBe(`HOST_AUTHENTICATION_TOKEN_SOURCE_${source}`);
  });

  test("belongs to the caller, to the deprecated user or to the subject, whichever is named", async () => {
    const own = user(member.userId);
    for (const body of [{}, { userId: member.userId }, { subject: own }, { userId: own.id, subject: own }]) {
      const token = await hostTokens.created(body, member.token);
      expect([token.subject, token.userId]).toEqual([own, own.id]);
    }
  });

  test("may belong to a service account, and then names no user", async () => {
    const validUntil = timestampJson(Date.now() + HOUR_MS);
    const made = await ok(
      hostTokens.call("ServiceAccountService/CreateServiceAccount", { name: "Nightly", validUntil }),
    );
    const subject = { id: made.serviceAccount.id, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
    const token = await hostTokens.created({ subject });
    expect([token.subject, token.userId]).toEqual([subject, ""]);
    const issued = await ok(
      hostTokens.call("ServiceAccountService/CreateServiceAccountToken", { serviceAccountId: subject.id }),
    );
    expect(await hostTokens.list({}, issued.token)).toEqual([token.id]);
    expect((await hostTokens.created({}, issued.token)).subject).toEqual(subject);
  });

  test("does not outlive its subject, and the record says that it went", async () => {
    const { userId } = await addMember(server, { organizationId, email: "leaver@localhost" });
    const { serviceAccount } = await ok(
      hostTokens.call("ServiceAccountService/CreateServiceAccount", {
        name: "leaver",
        validUntil: timestampJson(Date.now() + HOUR_MS),
      }),
    );
    const machine = { id: serviceAccount.id, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
    const [of, ofMachine, kept] = [
      await hostTokens.created({ subject: user(userId) }),
      await hostTokens.created({ subject: machine }),
      await hostTokens.created({}),
    ];
    await ok(hostTokens.call("OrganizationService/RemoveMember", { organizationId, userId }));
    await ok(hostTokens.call("ServiceAccountService/DeleteServiceAccount", { serviceAccountId: machine.id }));
    for (const { id } of [of, ofMachine]) {
      expectRefused(await hostTokens.get(id), 404, "NOT_FOUND");
      expect((await auditTrailOf(server, id)).kinds).toEqual(["created", "deleted"]);
    }
    await ok(hostTokens.get(kept.id));
  });

  test("takes 101 scopes and no more", async () => {
    const scopes = Array.from({ length: 102 }, (_, index) => `scope ${index}`);
    expect((await hostTokens.created({ scopes: scopes.slice(1) })).scopes).toHaveLength(101);
    expectRefused(await hostTokens.create({ scopes }), 400, "CONSTRAINT_VIOLATED");
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
      [{ expiresAt: timestampJson(Date.now() - 1_000) }, 400, "VALUE_UNUSABLE", /^expiresAt has passed/],
      [{ token: "" }, 400, "CONSTRAINT_VIOLATED", /\[token\]/],
      [{ token: "x".repeat(16_385) }, 400, "CONSTRAINT_VIOLATED", /\[token\]/],
      [{ host: "" }, 400, "CONSTRAINT_VIOLATED", /\[host\]/],
      [{ host: "https://Git.example.org/team" }, 400, "VALUE_UNUSABLE", /such as git\.example\.org$/],
      [{ host: "git.example.org:443" }, 400, "VALUE_UNUSABLE", /such as git\.example\.org$/],
      [{ host: "not a host" }, 400, "VALUE_UNUSABLE", /^host must be the name of a source-control host/],
    ];
    for (const [body, status, reason, message] of wrong) {
      expectRefused(await hostTokens.create(body), status, reason, message);
    }
  });
});

describe("one runner, host and subject", () => {
  test("have one token: a new one takes the place of the former, in one commit with both in the record", async () => {
    const host = "replaced.example.org";
    const former = await hostTokens.created({ host, token: "former" });
    const latter = await hostTokens.created({ host: "REPLACED.example.org", token: "latter" });
    expect(latter.id).not.toBe(former.id);
    expectRefused(await hostTokens.get(former.id), 404, "NOT_FOUND");
    expect((await hostTokens.get(latter.id)).status).toBe(200);
    expect((await auditTrailOf(server, former.id)).kinds).toEqual(["created", "deleted"]);
    const { rows, kinds } = await auditTrailOf(server, latter.id);
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
    const elsewhere = await hostTokens.newRunner("In the cellar");
    const tokens = [
      await hostTokens.created({ host }),
      await hostTokens.created({ host, subject: user(member.userId) }),
      await hostTokens.created({ host, runnerId: elsewhere }),
      await hostTokens.created({ host: "other.example.org" }),
    ];
    for (const { id } of tokens) expect((await hostTokens.get(id)).status).toBe(200);
  });

  test("have exactly one after fifty callers stored one at once", async () => {
    const host = "busy.example.org";
    const all = await Promise.all(Array.from({ length: 50 }, () => hostTokens.created({ host })));
    const statuses = await Promise.all(all.map(async ({ id }) => (await hostTokens.get(id)).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  });
});

describe("a host token of another", () => {
  test("is made, seen, changed and deleted by administrators", async () => {
    const { id, subject } = await hostTokens.created({ subject: user(member.userId) });
    expect(subject).toEqual(user(member.userId));
    expect((await hostTokens.get(id)).status).toBe(200);
    expect(await hostTokens.list({ subjectId: member.userId })).toContain(id);
    await ok(hostTokens.update(id, { scopes: ["repo"] }));
    await ok(hostTokens.remove(id));
    expectRefused(await hostTokens.remove(id), 404, "NOT_FOUND");
  });

  test("is out of reach for a member, who has its own", async () => {
    const { id } = await hostTokens.created({});
    const denied: [string, Answer][] = [
      ["create", await hostTokens.create({ subject: user(administrator) }, member.token)],
      ["create", await hostTokens.create({ userId: administrator }, member.token)],
      ["create", await hostTokens.create({ userId: v7() }, member.token)],
      ["get", await hostTokens.get(id, member.token)],
      ["update", await hostTokens.update(id, { token: "mine" }, member.token)],
      ["delete", await hostTokens.remove(id, member.token)],
    ];
    for (const [verb, answer] of denied) {
      expectRefused(answer, 403, "PERMISSION_DENIED");
      const { metadata } = answer.body.details[0].debug;
      expect(metadata).toEqual({ permission: `${verb}_host_authentication_token` });
    }
    expect(await hostTokens.list({ subjectId: administrator }, member.token)).toEqual([]);
    expect(await hostTokens.list({}, member.token)).not.toContain(id);
    expect((await hostTokens.get(id)).status).toBe(200);
    const own = await hostTokens.created({}, member.token);
    expect(await hostTokens.list({}, member.token)).toContain(own.id);
    await ok(hostTokens.update(own.id, { token: "another" }, member.token));
    await ok(hostTokens.remove(own.id, member.token));
  });
});

describe("a list of host tokens", () => {
  test("comes by creation, a page at a time, narrowed by runner, user and subject", async () => {
    const runner = await hostTokens.newRunner("For lists");
    const made: string[] = [];
    for (const body of [{}, { subject: user(member.userId) }, {}, {}]) {
      made.push((await hostTokens.created({ runnerId: runner, ...body })).id);
    }
    expect(await hostTokens.list({ runnerId: runner })).toEqual(made);
    expect(await hostTokens.list({ runnerId: runner, userId: member.userId })).toEqual([made[1]]);
    expect(await hostTokens.list({ runnerId: runner, subjectId: administrator })).toEqual(
      made.filter((_, index) => index !== 1),
    );
    expect(await hostTokens.list({ userId: member.userId, subjectId: administrator })).toEqual([]);
    const page = (token: string, as = server.token) =>
      hostTokens.call(
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
