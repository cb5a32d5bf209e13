import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { IdentityService } from "#gen/service/v1/identity_service_pb.js";
import { builderOf } from "../../src/store/query-builder.ts";
import { post, reasonOf } from "../harness/call.ts";
import { freePort } from "../harness/free-port.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { openPlain } from "../harness/plain-stream.ts";
import { withRawData } from "../harness/raw-data.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  startServer,
  stopAll,
} from "../harness/server.ts";
import { originOf, page, signIn, signInLink } from "../harness/session.ts";
import { watch } from "../harness/watch.ts";

const HOUR_MS = 3600 * 1000;
const WHOAMI = "IdentityService/GetAuthenticatedIdentity";

let server: HostedServer;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--cors-origins", "https://other.example.org"] });
  ({ organizationId } = (await post(server, WHOAMI)).body);
});
afterAll(stopAll);

let people = 0;
async function join(administrator = false): Promise<TestMember & { readonly email: string }> {
  people += 1;
  const email = `person${people}@example.org`;
  return { email, ...(await addMember(server, { organizationId, email, administrator })) };
}

/** A member who is signed in by a link. */
async function signedIn(administrator = false) {
  const person = await join(administrator);
  const { cookie } = await signIn(server, await signInLink(server, person.email));
  return { ...person, cookie };
}

/** A call as a page of the server makes it. */
const callAs = (
  cookie: string,
  operation = WHOAMI,
  body: object = {},
  headers: Record<string, string> = {},
) => post(server, operation, body, "", { cookie, origin: originOf(server), ...headers });

const ended = async (cookie: string) => expect((await callAs(cookie)).status).toBe(401);

/** A request that fetch does not let a program send. */
async function raw(path: string, headers: Record<string, string>, method = "GET") {
  const req = request(server.url + path, { method, headers });
  req.end();
  const [res] = (await once(req, "response")) as [IncomingMessage];
  res.resume();
  return res;
}

describe("a link", () => {
  test("names the person, and signs in once and no more, also when it is sent twice at the same time", async () => {
    const { email, userId } = await join();
    const secret = await signInLink(server, email);
    const named = await page(server, "person", { secret });
    expect([named.status, named.body.person]).toEqual([
      200,
      { name: `The person of ${email}`, email, organization: "My organization", readOnly: false },
    ]);
    const answers = await Promise.all([1, 2, 3].map(() => page(server, "session", { secret })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401]);
    const good = answers.find(({ status }) => status === 200);
    const cookie = good?.header.get("set-cookie") ?? "";
    expect(cookie).toMatch(
      /^__Host-chartroom=cr_ses_\w+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/,
    );
    const maxAge = Number(/Max-Age=(\d+)/.exec(cookie)?.[1]);
    expect(Math.abs(maxAge - 7 * 24 * 3600)).toBeLessThan(60);
    expect((await callAs(cookie.split(";")[0] ?? "")).body.subject.id).toBe(userId);
    // The answer to a replay is that to a secret that never was.
    const replay = await page(server, "person", { secret });
    expect(replay.body).toEqual((await page(server, "person", { secret: "cr_lnk_never" })).body);
    expect(replay.status).toBe(401);
  });

  test("is of no use after 15 minutes, and opens nothing else", async () => {
    const { email } = await join();
    const secret = await signInLink(server, email);
    expect((await post(server, WHOAMI, {}, secret)).status).toBe(401);
    expect((await callAs(`__Host-chartroom=${secret}`)).status).toBe(401);
    await withServerData(server, (store, keys) =>
      store.write({ id: "test", principal: 0 }, "test", ({ db, now }) =>
        builderOf(db)
          .updateTable("token")
          .set({ expires_at: now })
          .where("hash", "=", keys.readToken(secret)?.hash ?? new Uint8Array())
          .execute(),
      ),
    );
    expect((await page(server, "session", { secret })).status).toBe(401);
  });

  test("holds 15 minutes, is stored as a hash, and is of no use once its person is blocked", async () => {
    const { email, accountId } = await join();
    const before = Date.now();
    const secret = await signInLink(server, email);
    const rows = await withRawData(server.dataDir, (data) =>
      data.rows<{ expires_at: number; body: string }>("select * from token where kind = 'link'"),
    );
    const newest = Math.max(...rows.map(({ expires_at }) => Number(expires_at)));
    expect(newest).toBeGreaterThanOrEqual(before + 15 * 60_000);
    expect(newest).toBeLessThanOrEqual(Date.now() + 15 * 60_000);
    expect(JSON.stringify(rows)).not.toContain(secret);
    await post(server, "AccountService/BlockAccount", { accountId, reason: "left" });
    expect((await page(server, "session", { secret })).status).toBe(401);
  });

  test("to another account replaces no session silently", async () => {
    const [first, second] = [await signedIn(), await join()];
    const secret = await signInLink(server, second.email);
    const { cookie } = first;
    const named = await page(server, "person", { secret }, { cookie });
    expect([named.body.person.email, named.body.signedIn.email]).toEqual([second.email, first.email]);
    const silent = await page(server, "session", { secret }, { cookie });
    expect([silent.status, silent.header.get("set-cookie")]).toEqual([400, null]);
    expect(silent.body.details[0].debug.metadata).toEqual({ resource: "session", phase: "signed_in" });
    expect((await callAs(cookie)).body.subject.id).toBe(first.userId);
    const agreed = await page(server, "session", { secret, replace: true }, { cookie });
    expect(agreed.status).toBe(200);
    await ended(cookie);
  });

  test("is printed by the first start, and names the server", async () => {
    const fresh = await startServer();
    const link = new RegExp(`${fresh.url}/sign-in#(cr_lnk_\\w+)`).exec(fresh.output())?.[1] ?? "";
    const { cookie } = await signIn(fresh, link);
    const answer = await post(fresh, WHOAMI, {}, "", { cookie, origin: originOf(fresh) });
    expect(answer.body.subject.principal).toBe("PRINCIPAL_USER");
    expect(fresh.logText()).not.toContain(link);
  });

  test("is printed for a member by id, address or name, and for nobody else", async () => {
    const { email, userId } = await join();
    const print = (who: string, ...args: string[]) =>
      runHostedCommand(["member", "sign-in", who, "--data-dir", server.dataDir, ...args]);
    for (const who of [email, userId, `The person of ${email}`]) {
      const { stdout } = await print(who, "--base-url", "https://chartroom.example.org");
      expect(stdout).toMatch(/^https:\/\/chartroom\.example\.org\/sign-in#cr_lnk_\w+\n$/);
    }
    // The server's port is none that the command would take for its own; named, another one counts.
    const origin = async (...args: string[]) => new URL((await print(email, ...args)).stdout).origin;
    expect([await origin(), await origin("--port", "8081")]).toEqual([server.url, "http://127.0.0.1:8081"]);
    const nobody = await print("nobody");
    expect([nobody.code, nobody.stderr]).toEqual([
      1,
      "chartroom: no member has the id, mail address or name nobody\n",
    ]);
  });
});

describe("a session", () => {
  test("is a new one with each sign-in, whatever cookie the browser had", async () => {
    const { email } = await join();
    const chosen = `__Host-chartroom=cr_ses_${"a".repeat(36)}`;
    const secret = await signInLink(server, email);
    const answer = await page(server, "session", { secret }, { cookie: chosen });
    const [cookie = ""] = answer.header.get("set-cookie")?.split(";") ?? [];
    expect(cookie).not.toBe(chosen);
    await ended(chosen);
    // Somebody who knew the session of the same person from before has nothing, either.
    const again = await signInLink(server, email);
    expect((await page(server, "session", { secret: again }, { cookie })).status).toBe(200);
    await ended(cookie);
  });

  test.each([
    ["no origin", { origin: "" }],
    ["another origin", { origin: "https://other.example.org" }],
    ["an origin of another port", { origin: "http://chartroom.localhost:1" }],
    ["the address of this machine", { origin: "http://127.0.0.1:8080" }],
    ["the null origin", { origin: "null" }],
    ["an empty header Authorization", { authorization: "" }],
    ["a wrong header Authorization", { authorization: "Bearer nothing" }],
  ])("does not count with %s", async (_, headers) => {
    const { cookie } = await signedIn();
    expect((await callAs(cookie)).status).toBe(200);
    const kept: Record<string, string> = { ...headers };
    const answer = await callAs(cookie, WHOAMI, {}, kept);
    expect([answer.status, answer.body.code]).toEqual([401, "unauthenticated"]);
    expect(answer.header.get("access-control-allow-credentials")).toBeNull();
  });

  test("does not count as a token, twice, or as another kind", async () => {
    const { cookie, token } = await signedIn();
    const value = cookie.replace("__Host-chartroom=", "");
    expect((await post(server, WHOAMI, {}, value)).status).toBe(401);
    await ended(`${cookie}; ${cookie}`);
    await ended(`chartroom=${value}`);
    await ended(`__Host-chartroom=${token}`);
    // Where a token is sent as well, that counts.
    expect((await callAs(cookie, WHOAMI, {}, { authorization: `Bearer ${server.token}` })).status).toBe(200);
  });

  test("counts for streams of service.v1, and not for gRPC, GET, runners or webhooks", async () => {
    const { cookie } = await signedIn();
    const headers = { cookie, origin: originOf(server) };
    const stream = await callAs(cookie, "EventService/WatchEvents", {
      organization: true,
      afterSequence: "0",
    });
    expect(stream.status).toBe(200);
    const plain = async (method: "GET" | "POST", origin: string) => {
      const lines = await openPlain(server, "EventService/WatchEvents", {
        form: "application/x-ndjson",
        method,
        headers: { cookie, origin },
      });
      lines.cut();
      return lines.status;
    };
    expect(await plain("POST", originOf(server))).toBe(200);
    expect(await plain("POST", "https://elsewhere.example.org")).toBe(401);
    // Any page can make a browser send it.
    expect(await plain("GET", originOf(server))).toBe(401);
    for (const transport of [
      createGrpcTransport({ baseUrl: server.url }),
      createGrpcWebTransport({ baseUrl: server.url, httpVersion: "1.1" }),
    ]) {
      const call = createClient(IdentityService, transport).getAuthenticatedIdentity({}, { headers });
      await expect(call).rejects.toMatchObject({ code: 16 });
    }
    const get = await raw(`/api/service.v1.${WHOAMI}?connect=v1&encoding=json&message=%7B%7D`, headers);
    expect(get.statusCode).toBe(401);
    expect((await callAs(cookie, "WorkService/Heartbeat")).status).toBe(401);
    const reflection = await raw(
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      headers,
      "POST",
    );
    expect(reflection.statusCode).toBe(401);
    const delivery = await fetch(`${server.url}/workflows/${organizationId}/webhooks`, {
      method: "POST",
      headers,
      body: "{}",
    });
    expect(delivery.status).toBe(401);
  });

  test("ends 12 hours after its last use, and 7 days after its beginning", async () => {
    for (const [column, age] of [
      ["last_used_at", 12 * HOUR_MS],
      ["expires_at", 0],
    ] as const) {
      const { cookie, userId } = await signedIn();
      const set = (value: number) =>
        withServerData(server, (store) =>
          store.write({ id: "test", principal: 0 }, "test", ({ db }) =>
            builderOf(db)
              .updateTable("token")
              .set({ [column]: value })
              .where("subject_id", "=", userId)
              .where("kind", "=", "session")
              .execute(),
          ),
        );
      await set(Date.now() - age + 60_000);
      expect((await callAs(cookie)).status).toBe(200);
      await set(Date.now() - age);
      const answer = await callAs(cookie);
      expect([answer.status, reasonOf(answer)]).toEqual([401, "UNAUTHENTICATED"]);
    }
  });

  test("is listed by its user, and ended by them alone", async () => {
    const [person, other] = [await signedIn(), await signedIn()];
    const list = async (cookie: string) => (await callAs(cookie, "UserService/ListSessions")).body.sessions;
    const [session, ...more] = await list(person.cookie);
    expect([more, session.current, session.userId]).toEqual([[], true, person.userId]);
    const revoke = (cookie: string) => callAs(cookie, "UserService/RevokeSession", { sessionId: session.id });
    expect((await revoke(other.cookie)).status).toBe(404);
    expect((await revoke(person.cookie)).status).toBe(200);
    await ended(person.cookie);
    expect((await list(other.cookie)).map((each: { current: boolean }) => each.current)).toEqual([true]);
  });

  test.each([
    [
      "a block",
      (who: TestMember) =>
        post(server, "AccountService/BlockAccount", { accountId: who.accountId, reason: "left" }),
    ],
    [
      "a suspension",
      (who: TestMember) => post(server, "UserService/SetSuspended", { userId: who.userId, suspended: true }),
    ],
    [
      "a removal",
      (who: TestMember) =>
        post(server, "OrganizationService/RemoveMember", { organizationId, userId: who.userId }),
    ],
  ])("ends at once with %s, its streams too, and does not come back", async (name, cut) => {
    const person = await signedIn();
    const transport = createConnectTransport({
      baseUrl: `${server.url}/api`,
      httpVersion: "1.1",
      interceptors: [
        (next) => (req) => {
          req.header.delete("authorization");
          req.header.set("cookie", person.cookie);
          req.header.set("origin", originOf(server));
          return next(req);
        },
      ],
    });
    const watching = watch(transport, "");
    await watching.opened;
    expect((await cut(person)).status).toBe(200);
    await watching.ended;
    await ended(person.cookie);
    if (name === "a block")
      await post(server, "AccountService/UnblockAccount", { accountId: person.accountId });
    if (name === "a suspension") {
      await post(server, "UserService/SetSuspended", { userId: person.userId, suspended: false });
    }
    await ended(person.cookie);
    const rows = await withRawData(server.dataDir, (data) =>
      data.rows("select id from token where subject_id = ? and kind in ('session', 'link')", person.userId),
    );
    expect(rows).toEqual([]);
  });

  test("that begins with a token has its rights, its read-only mark and its end, and goes with it", async () => {
    const { token } = await join();
    const { body } = await post(
      server,
      "UserService/CreatePersonalAccessToken",
      { readOnly: true, validFor: "3600s" },
      token,
    );
    const person = await page(server, "person", { secret: body.token });
    expect(person.body.person.readOnly).toBe(true);
    const { cookie } = await signIn(server, body.token);
    const { sessions } = (await callAs(cookie, "UserService/ListSessions")).body;
    expect(sessions[0].readOnly).toBe(true);
    expect(Date.parse(sessions[0].expiresAt)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
    const write = await callAs(cookie, "UserService/CreatePersonalAccessToken");
    expect([write.status, reasonOf(write)]).toEqual([403, "PERMISSION_DENIED"]);
    const list = (await post(server, "UserService/ListPersonalAccessTokens", {}, token)).body;
    const { id } = list.personalAccessTokens.at(-1);
    await post(server, "UserService/DeletePersonalAccessToken", { personalAccessTokenId: id }, token);
    await ended(cookie);
  });

  test("is one of 25 at most: with another, the first ends", async () => {
    const { token } = await join();
    const first = await signIn(server, token);
    const second = await signIn(server, token);
    for (let count = 2; count < 25; count++) await signIn(server, token);
    expect((await callAs(first.cookie)).status).toBe(200);
    await signIn(server, token);
    await ended(first.cookie);
    const { sessions } = (await callAs(second.cookie, "UserService/ListSessions")).body;
    expect(sessions).toHaveLength(25);
  });

  test("begins with no token of a program, and with none that is refused", async () => {
    const { runner, exchangeToken } = (await post(server, "RunnerService/CreateRunner", { name: "attic" }))
      .body;
    expect(runner.runnerId).toBeDefined();
    const { cookie } = await signedIn();
    for (const secret of [exchangeToken, cookie.replace(/^.*=/, ""), "", "cr_pat_x", "x".repeat(900)]) {
      const answer = await page(server, "session", { secret });
      expect([answer.status, answer.header.get("set-cookie")]).toEqual([401, null]);
    }
  });
});

describe("a session of a member of several organizations", () => {
  /** A person who is signed in by a link, and a member of another organization, too. */
  async function inTwo() {
    const person = await signedIn();
    people += 1;
    const elsewhere = await addOrganization(server, `elsewhere${people}`);
    const { email } = person;
    const member = await addMember(server, { organizationId: elsewhere.organizationId, email });
    return { ...person, elsewhere, member };
  }
  const listed = async (cookie: string) => (await page(server, "organizations", {}, { cookie })).body;
  const change = (cookie: string, id: string, headers: Record<string, string> = {}) =>
    page(server, "organization", { organizationId: id }, { cookie, ...headers });
  const cookieIn = (answer: Awaited<ReturnType<typeof page>>) =>
    answer.header.get("set-cookie")?.split(";")[0] ?? "";

  test("is exchanged for a new one in another of them, which ends no later and is in the record", async () => {
    const { cookie, elsewhere, member, userId } = await inTwo();
    const { organizationId: id } = elsewhere;
    expect((await listed(cookie)).organizations).toEqual([
      { id, name: `elsewhere${people}`, current: false, providers: [] },
      { id: organizationId, name: "My organization", current: true, providers: [] },
    ]);
    const before = (await callAs(cookie, "UserService/ListSessions")).body.sessions[0];
    // Of two at the same time one is answered: the session is used up with it.
    const answers = await Promise.all([change(cookie, id.toUpperCase()), change(cookie, id)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401]);
    const begun = answers.find(({ status }) => status === 200);
    const next = begun ? cookieIn(begun) : "";
    expect(begun?.header.get("set-cookie")).toMatch(/HttpOnly; Secure; SameSite=Lax$/);
    await ended(cookie);
    expect((await callAs(next)).body).toMatchObject({ organizationId: id, subject: { id: member.userId } });
    expect((await callAs(next, "UserService/ListSessions")).body.sessions).toEqual([
      expect.objectContaining({ current: true, expiresAt: before.expiresAt, userId: member.userId }),
    ]);
    // Nothing of the first organization is within reach of the second session.
    const foreign = await callAs(next, "OrganizationService/GetOrganization", { organizationId });
    expect([foreign.status, reasonOf(foreign)]).toEqual([404, "NOT_FOUND"]);
    const rows = await withRawData(server.dataDir, (data) =>
      data.rows<{ organization_id: string; actor_id: string; subject_type: string }>(
        "select organization_id, actor_id, subject_type from audit_log where operation = 'sign-in/organization'",
      ),
    );
    // Each organization's trail names its own member, and nobody of the other.
    const own = rows.filter(({ actor_id }) => [userId, member.userId].includes(actor_id));
    const ofBoth = [
      { organization_id: organizationId, actor_id: userId, subject_type: "token" },
      { organization_id: id, actor_id: member.userId, subject_type: "token" },
    ];
    expect(new Set(own)).toEqual(new Set(ofBoth));
  });

  test("leads into none whose active member the person is not", async () => {
    const { cookie, elsewhere, member, accountId } = await inTwo();
    const { organizationId: id, token } = elsewhere;
    const stranger = await addOrganization(server, `stranger${people}`);
    const refused = async (to: string) => {
      const answer = await change(cookie, to);
      expect([answer.status, answer.header.get("set-cookie")]).toEqual([404, null]);
      return answer.body.message;
    };
    const unknown = await refused("01890a5d-ac96-774b-bcce-b302099a8057");
    expect(await refused(stranger.organizationId)).toBe(unknown);
    for (const none of ["", "\0", "my-organization"]) expect(await refused(none)).toBe(unknown);
    const { userId } = member;
    await post(server, "UserService/SetSuspended", { userId, suspended: true }, token);
    expect(await refused(id)).toBe(unknown);
    expect((await listed(cookie)).organizations).toHaveLength(1);
    await post(server, "UserService/SetSuspended", { userId, suspended: false }, token);
    expect((await listed(cookie)).organizations).toHaveLength(2);
    await post(server, "OrganizationService/RemoveMember", { organizationId: id, userId }, token);
    expect(await refused(id)).toBe(unknown);
    expect((await callAs(cookie)).status).toBe(200);
    await withRawData(server.dataDir, (data) =>
      data.run(`update account set blocked_at = 1 where id = '${accountId}'`),
    );
    expect((await change(cookie, id)).status).toBe(401);
  });

  test.each([[false], [true]])(
    "stays in its own where it began with a token (read-only: %p)",
    async (readOnly) => {
      const { token, elsewhere } = await inTwo();
      const made = await post(server, "UserService/CreatePersonalAccessToken", { readOnly }, token);
      const { cookie } = await signIn(server, made.body.token);
      expect((await listed(cookie)).organizations).toEqual([expect.objectContaining({ id: organizationId })]);
      const answer = await change(cookie, elsewhere.organizationId);
      expect([answer.status, answer.header.get("set-cookie")]).toEqual([403, null]);
      expect((await callAs(cookie)).status).toBe(200);
    },
  );

  test("is exchanged by the server's own page alone", async () => {
    const { cookie, token, elsewhere } = await inTwo();
    const { organizationId: id } = elsewhere;
    const statuses: number[] = [];
    for (const headers of [
      { origin: "" },
      { origin: "null" },
      { origin: "https://other.example.org" },
      { origin: server.url },
      { authorization: `Bearer ${token}` },
      { "content-type": "application/x-www-form-urlencoded" },
      { "content-type": "text/plain" },
      { cookie: "" },
    ] as Record<string, string>[]) {
      const answer = await change(cookie, id, headers);
      expect(answer.header.get("set-cookie")).toBeNull();
      statuses.push(answer.status);
    }
    expect(statuses).toEqual([403, 403, 403, 403, 403, 415, 415, 401]);
    expect((await callAs(cookie)).body.organizationId).toBe(organizationId);
  });
});

test("the sign-in page names the organization of an invite to anyone who has its id, and of no other", async () => {
  const { body } = await post(server, "OrganizationService/CreateOrganizationInvite", { organizationId });
  const { inviteId } = body.invite;
  const named = await page(server, "invite", { inviteId });
  expect([named.status, named.body]).toEqual([200, { organization: "My organization", providerIds: [] }]);
  for (const other of ["01890a5d-ac96-474b-8cce-b302099a8057", "", organizationId]) {
    const { status, body } = await page(server, "invite", { inviteId: other });
    expect([status, body.code]).toEqual([404, "not_found"]);
  }
  const foreign = await page(server, "invite", { inviteId }, { origin: "https://other.example.org" });
  expect(foreign.status).toBe(403);
});

describe("the sign-in page", () => {
  const { host } = { host: () => originOf(server).replace("http://", "") };

  test("runs its own script alone, and nothing keeps or frames it", async () => {
    for (const [path, type] of [
      ["/sign-in", "text/html; charset=utf-8"],
      ["/sign-in/device", "text/html; charset=utf-8"],
      ["/sign-in/device.js", "text/javascript; charset=utf-8"],
      ["/sign-in/sign-in.js", "text/javascript; charset=utf-8"],
      ["/sign-in/sign-in.css", "text/css; charset=utf-8"],
    ] as const) {
      const res = await raw(path, { host: host() });
      expect([path, res.statusCode, res.headers["content-type"]]).toEqual([path, 200, type]);
      expect(res.headers["content-security-policy"]).toMatch(
        /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/,
      );
      expect(res.headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
      });
    }
    expect((await raw("/sign-in/none", { host: host() })).statusCode).toBe(404);
    expect((await raw("/sign-in", { host: host() }, "DELETE")).statusCode).toBe(405);
  });

  test("sends a browser from an address of this machine to the name of sessions, and nowhere else", async () => {
    const place = `${originOf(server)}/sign-in`;
    for (const name of [`127.0.0.1:${server.port}`, `localhost:${server.port}`, `[::1]:${server.port}`]) {
      for (const path of [
        "/sign-in",
        "/sign-in?to=https://evil.example.org",
        "/sign-in?//evil.example.org",
      ]) {
        const res = await raw(path, { host: name });
        expect([name, path, res.statusCode, res.headers.location]).toEqual([name, path, 302, place]);
      }
    }
    for (const name of ["evil.example.org", `evil.example.org:${server.port}`]) {
      const res = await raw("/sign-in", { host: name });
      expect([res.statusCode, res.headers.location]).toEqual([200, undefined]);
    }
  });

  test.each([
    ["another origin", { origin: "https://other.example.org" }, 403],
    ["no origin", { origin: "" }, 403],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["text", { "content-type": "text/plain" }, 415],
    ["a token in a header", { authorization: "Bearer x" }, 403],
  ])("is signed in on by its own script alone: not by %s", async (_, headers, status) => {
    const { email } = await join();
    const secret = await signInLink(server, email);
    for (const path of ["person", "session"] as const) {
      const answer = await page(server, path, { secret }, headers as unknown as Record<string, string>);
      expect([path, answer.status, answer.header.get("set-cookie")]).toEqual([path, status, null]);
      expect(answer.header.get("access-control-allow-credentials")).toBeNull();
    }
    expect((await page(server, "session", { secret })).status).toBe(200);
  });

  test("takes 1,024 bytes and a JSON object", async () => {
    const body = (bytes: number) => `{"secret":"${"x".repeat(bytes - 13)}"}`;
    expect(body(1_024)).toHaveLength(1_024);
    const statuses = async (...bodies: string[]) =>
      Promise.all(bodies.map(async (each) => (await page(server, "session", each)).status));
    expect(await statuses(body(1_023), body(1_024), body(1_025))).toEqual([401, 401, 413]);
    expect(await statuses("{", "[]", "null", '{"secret":1}', '{"secret":"x","replace":"yes"}')).toEqual([
      ...[400, 401, 400, 400, 400],
    ]);
  });

  test("signs nobody in where the server is reached over plain http", async () => {
    const port = await freePort();
    const { dataDir } = await startHostedServer({
      args: ["--port", String(port), "--base-url", "http://chartroom.example.org"],
    });
    const url = `http://127.0.0.1:${port}`;
    const secret = await signInLink({ dataDir }, "admin@localhost");
    const answer = await page({ url }, "session", { secret }, { origin: "http://chartroom.example.org" });
    expect([answer.status, answer.header.get("set-cookie")]).toEqual([400, null]);
    expect(answer.body.message).toContain("sessions need TLS");
  });
});
