import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { removeOldDeviceLogins } from "../../src/jobs/token-expiry.ts";
import { insertDeviceLogin } from "../../src/store/identity/device-login.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { post, reasonOf } from "../harness/call.ts";
import { freePort } from "../harness/free-port.ts";
import { addMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { withRawData } from "../harness/raw-data.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { originOf, page, signIn } from "../harness/session.ts";
import { until } from "../harness/until.ts";

const GRANT = "urn:ietf:params:oauth:grant-type:device_code";
const WHOAMI = "IdentityService/GetAuthenticatedIdentity";

let server: HostedServer;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--trusted-proxies", "127.0.0.1"] });
  ({ organizationId } = (await post(server, WHOAMI)).body);
});
afterAll(stopAll);

let networks = 0;
/** An address from which nobody has asked yet. */
const newAddress = () => {
  networks += 1;
  return `10.0.${networks >> 8}.${networks & 255}`;
};

/** Sends what a device sends. */
async function send(
  path: string,
  form: Readonly<Record<string, string>>,
  address = newAddress(),
  to: Pick<HostedServer, "url"> = server,
) {
  const res = await fetch(`${to.url}/sign-in/device/${path}`, {
    method: "POST",
    headers: { "x-forwarded-for": address },
    body: new URLSearchParams(form),
  });
  return { status: res.status, header: res.headers, body: JSON.parse(await res.text()) };
}

async function begin(machine = "laptop", address = newAddress()) {
  const { body } = await send("authorize", { client_id: "chartroom", machine }, address);
  return { device: body.device_code as string, code: body.user_code as string };
}

const poll = (device: string, to = server) =>
  send("token", { grant_type: GRANT, device_code: device, client_id: "chartroom" }, newAddress(), to);

const errorOf = async (device: string) => (await poll(device)).body.error;

let people = 0;
/** Ids of people by their cookies. */
const ids = new Map<string, string>();
async function person(administrator = false) {
  people += 1;
  const email = `device${people}@example.org`;
  const member = await addMember(server, { organizationId, email, administrator });
  const { cookie } = await signIn(server, member.token);
  ids.set(cookie, member.userId);
  return { ...member, email, cookie };
}

/** Sends what the page sends, with the session of a person. */
const atPage = (
  path: "request" | "decide",
  cookie: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
) =>
  page(server, `device/${path}`, body, {
    ...(cookie && { cookie }),
    "x-forwarded-for": newAddress(),
    ...headers,
  });

const decide = (cookie: string, code: string, allow = true, userId = ids.get(cookie)) =>
  atPage("decide", cookie, { code, allow, userId });

/** Lets the next question of every device come in time. */
const letTimePass = (ms = 1_000_000) =>
  withRawData(server.dataDir, (data) => data.run(`update device_login set polled_at = polled_at - (${ms})`));

test("a form that is too large is refused, and the next one is read", async () => {
  const answer = await send("authorize", { client_id: "chartroom", machine: "x".repeat(300_000) });
  const error_description = "the request is larger than the 2048 bytes that the operation takes";
  expect([answer.status, answer.body]).toEqual([400, { error: "invalid_request", error_description }]);
  expect((await begin()).code).toEqual(expect.any(String));
});

describe("a device", () => {
  test("gets a token once a person has allowed it, once", async () => {
    const { userId, cookie } = await person();
    const begun = await send("authorize", { client_id: "chartroom", machine: "build\u202e\u0007server" });
    expect(begun.status).toBe(200);
    expect(begun.header.get("cache-control")).toBe("no-store");
    const { device_code: device, user_code: code, ...others } = begun.body;
    const address = `${originOf(server)}/sign-in/device`;
    expect(others).toEqual({
      verification_uri: address,
      verification_uri_complete: `${address}#${code}`,
      expires_in: 900,
      interval: 5,
    });
    expect(device).toMatch(/^cr_dev_\w{36}$/);
    expect(code).toMatch(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
    expect([(await poll(device)).status, await errorOf(device)]).toEqual([400, expect.any(String)]);
    await letTimePass(-100_000);
    expect(await errorOf(device)).toBe("slow_down");
    await letTimePass();
    expect(await errorOf(device)).toBe("authorization_pending");

    const named = await atPage("request", cookie, { code: code.toLowerCase().replace("-", " ") });
    expect([named.status, named.body.machine]).toEqual([200, "build server"]);
    expect(named.body.address).toMatch(/^10\.0\.\d+\.\d+$/);
    expect(Math.abs(Date.parse(named.body.askedAt) - Date.now())).toBeLessThan(15 * 60_000);
    // To look is to decide nothing.
    await letTimePass();
    expect(await errorOf(device)).toBe("authorization_pending");
    expect((await decide(cookie, code)).status).toBe(200);

    // Of many at the same time, too.
    const answers = await Promise.all([1, 2, 3].map(() => poll(device)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400]);
    const got = answers.find(({ status }) => status === 200)?.body;
    expect(got).toEqual({
      access_token: expect.stringMatching(/^cr_pat_/),
      token_type: "Bearer",
      expires_in: 30 * 24 * 3600,
    });
    expect(await errorOf(device)).toBe("invalid_grant");
    expect((await post(server, WHOAMI, {}, got.access_token)).body.subject.id).toBe(userId);
    const { body } = await post(server, "UserService/ListPersonalAccessTokens", {}, got.access_token);
    const made = body.personalAccessTokens.find(
      ({ description }: { description: string }) => description === "chartroom login on build server",
    );
    expect(made).toMatchObject({ userId, creator: { id: userId, principal: "PRINCIPAL_USER" } });
    const audit = await post(server, "EventService/ListAuditLogs", { filter: { subjectIds: [made.id] } });
    expect(audit.body.entries[0]).toMatchObject({ actorId: userId, action: "sign-in/device" });
    // Neither code opens anything else, and none is in the log.
    expect((await post(server, WHOAMI, {}, device)).status).toBe(401);
    expect((await page(server, "person", { secret: device })).status).toBe(401);
    for (const secret of [device, code, code.replace("-", ""), got.access_token]) {
      expect(server.logText()).not.toContain(secret);
    }
  });

  test("that is allowed or not is a row without its codes", async () => {
    const { device, code } = await begin();
    const rows = await withRawData(server.dataDir, (data) => data.rows("select * from device_login"));
    const texts = rows.flatMap((row) =>
      Object.values(row).map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString() : String(value),
      ),
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const secret of [device, code, code.replace("-", "")])
      expect(texts.join("\n")).not.toContain(secret);
  });

  test("that is refused learns so once", async () => {
    const { cookie } = await person();
    const { device, code } = await begin();
    expect((await decide(cookie, code, false)).status).toBe(200);
    expect([await errorOf(device), await errorOf(device)]).toEqual(["access_denied", "invalid_grant"]);
  });

  test("gets nothing once 15 minutes have passed, allowed or not", async () => {
    const { cookie } = await person();
    const [waiting, allowed] = [await begin(), await begin()];
    await decide(cookie, allowed.code);
    await withRawData(server.dataDir, (data) =>
      data.run("update device_login set created_at = created_at - 900000, expires_at = expires_at - 900000"),
    );
    expect([await errorOf(waiting.device), await errorOf(allowed.device)]).toEqual([
      "expired_token",
      "expired_token",
    ]);
    expect((await decide(cookie, waiting.code)).status).toBe(404);
    expect((await atPage("request", cookie, { code: waiting.code })).status).toBe(404);
  });

  test.each<[string, (member: Awaited<ReturnType<typeof person>>) => Promise<unknown>]>([
    [
      "is suspended, also when that is lifted",
      async ({ userId }) => {
        await post(server, "UserService/SetSuspended", { userId, suspended: true });
        await post(server, "UserService/SetSuspended", { userId, suspended: false });
      },
    ],
    ["is suspended", ({ userId }) => post(server, "UserService/SetSuspended", { userId, suspended: true })],
    [
      "is removed",
      ({ userId }) => post(server, "OrganizationService/RemoveMember", { organizationId, userId }),
    ],
    [
      "is blocked",
      ({ accountId }) => post(server, "AccountService/BlockAccount", { accountId, reason: "left" }),
    ],
  ])("gets nothing of a person who %s, before it is allowed or after", async (_, end) => {
    const member = await person();
    const [before, after] = [await begin(), await begin()];
    expect((await decide(member.cookie, before.code)).status).toBe(200);
    await end(member);
    expect(await errorOf(before.device)).toBe("access_denied");
    expect((await decide(member.cookie, after.code)).status).toBe(401);
    expect(await errorOf(after.device)).toBe("authorization_pending");
  });

  test("asks in the form of RFC 8628", async () => {
    const { device } = await begin();
    const asked = async (form: Readonly<Record<string, string>>) => (await send("token", form)).body.error;
    expect(await asked({ device_code: device })).toBe("unsupported_grant_type");
    expect(await asked({ grant_type: "password", device_code: device })).toBe("unsupported_grant_type");
    expect(await asked({ grant_type: GRANT })).toBe("invalid_grant");
    expect(await asked({ grant_type: GRANT, device_code: `cr_dev_${"0".repeat(36)}` })).toBe("invalid_grant");
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    for (const path of ["authorize", "token"]) {
      const res = await fetch(`${server.url}/sign-in/device/${path}`, json);
      const error_description = "send application/x-www-form-urlencoded";
      expect([res.status, await res.json()]).toEqual([400, { error: "invalid_request", error_description }]);
      const large = await send(path, { grant_type: GRANT, machine: "x".repeat(2_100) });
      expect([large.status, large.body.error]).toEqual([400, "invalid_request"]);
      expect((await fetch(`${server.url}/sign-in/device/${path}`)).status).toBe(405);
    }
  });
});

describe("a code", () => {
  test("is of use to the first person alone, of whichever organization", async () => {
    const elsewhere = await addOrganization(server, "device-elsewhere");
    const stranger = await signIn(server, elsewhere.token);
    const { cookie, userId } = await person();
    const { device, code } = await begin();
    expect((await decide(cookie, code)).status).toBe(200);
    for (const other of [stranger.cookie, (await person()).cookie, cookie]) {
      expect((await atPage("request", other, { code })).status).toBe(404);
      expect((await decide(other, code, false)).status).toBe(404);
    }
    const { access_token } = (await poll(device)).body;
    const { subject, organizationId: of } = (await post(server, WHOAMI, {}, access_token)).body;
    expect([subject.id, of]).toEqual([userId, organizationId]);
  });

  test("is confirmed by the page with a session alone: by no other origin, form or token", async () => {
    const { cookie, token } = await person();
    const { device, code } = await begin();
    const attempts: [Record<string, string>, number][] = [
      [{ origin: "https://evil.example.org" }, 403],
      [{ origin: server.url }, 403],
      [{ origin: "null" }, 403],
      [{ "content-type": "application/x-www-form-urlencoded" }, 415],
      [{ "content-type": "text/plain" }, 415],
      [{ authorization: `Bearer ${token}` }, 403],
    ];
    for (const [headers, status] of attempts) {
      for (const path of ["request", "decide"] as const) {
        const answer = await atPage(path, cookie, { code, allow: true }, headers);
        expect([headers, answer.status]).toEqual([headers, status]);
      }
    }
    // Fixation: a cookie that is no session, or that another put there, is nobody.
    for (const other of ["", `__Host-chartroom=cr_ses_${"a".repeat(36)}`, `${cookie}; ${cookie}`]) {
      expect((await decide(other, code)).status).toBe(401);
    }
    const byGet = await fetch(`${server.url}/sign-in/device/decide?code=${code}&allow=true`, {
      headers: { cookie, origin: originOf(server) },
    });
    expect(byGet.status).toBe(405);
    expect(await errorOf(device)).toBe("authorization_pending");
    // To say nothing is to refuse.
    expect((await atPage("decide", cookie, { code, userId: ids.get(cookie) })).status).toBe(200);
    expect(await errorOf(device)).toBe("access_denied");
  });

  test("is decided for the person whom the page has named together with the machine, and for nobody else", async () => {
    const [named, other] = [await person(), await person()];
    const { device, code } = await begin();
    const { body } = await atPage("request", named.cookie, { code });
    expect(body.person).toMatchObject({ userId: named.userId, email: named.email });
    // Another tab of the browser has signed in somebody else since.
    for (const userId of [named.userId, ""]) {
      const refused = await decide(other.cookie, code, true, userId);
      expect([refused.status, reasonOf(refused)]).toEqual([400, "PHASE_UNSUITABLE"]);
    }
    expect(await errorOf(device)).toBe("authorization_pending");
    expect((await decide(named.cookie, code, true, body.person.userId)).status).toBe(200);
    await letTimePass();
    const { access_token } = (await poll(device)).body;
    expect((await post(server, WHOAMI, {}, access_token)).body.subject.id).toBe(named.userId);
  });

  test("is of no use in a read-only session", async () => {
    const { token } = await person();
    const readOnly = await post(server, "UserService/CreatePersonalAccessToken", { readOnly: true }, token);
    const { cookie } = await signIn(server, readOnly.body.token);
    const { device, code } = await begin();
    const answer = await decide(cookie, code);
    expect([answer.status, reasonOf(answer)]).toEqual([403, "PERMISSION_DENIED"]);
    expect(await errorOf(device)).toBe("authorization_pending");
  });

  test("is looked at no more after 10 wrong ones of a person", async () => {
    const [guesser, other] = [await person(), await person()];
    const { code } = await begin();
    const wrong = () => atPage("request", guesser.cookie, { code: "BBBB-BBBB" });
    for (let attempt = 1; attempt <= 9; attempt++) expect((await wrong()).status).toBe(404);
    expect((await atPage("request", guesser.cookie, { code })).status).toBe(200);
    expect((await wrong()).status).toBe(404);
    const late = await decide(guesser.cookie, code);
    expect([late.status, reasonOf(late)]).toEqual([429, "TOO_MANY_CALLS"]);
    expect((await atPage("request", other.cookie, { code })).status).toBe(200);
    await withRawData(server.dataDir, (data) =>
      data.rows(
        "update sign_in_attempt set since = since - 900000 where key = ?",
        `account ${guesser.accountId}`,
      ),
    );
    expect((await decide(guesser.cookie, code)).status).toBe(200);
  });

  test("is looked at no more after 50 wrong ones from an address", async () => {
    const [one, two] = [await person(), await person()];
    const { code } = await begin();
    const address = { "x-forwarded-for": newAddress() };
    const ask = (cookie: string, typed: string) => atPage("request", cookie, { code: typed }, address);
    expect((await ask(one.cookie, "BBBB-BBBB")).status).toBe(404);
    await withRawData(server.dataDir, (data) =>
      data.rows(
        "update sign_in_attempt set count = 49 where key = ?",
        `network ${address["x-forwarded-for"]}`,
      ),
    );
    expect((await ask(two.cookie, code)).status).toBe(200);
    expect((await ask(two.cookie, "BBBB-BBBB")).status).toBe(404);
    expect((await ask(two.cookie, code)).status).toBe(429);
    expect((await atPage("request", two.cookie, { code })).status).toBe(200);
  });
});

describe("open logins", () => {
  test("are 10 of a network at most, until they end or come to something", async () => {
    const address = "2001:db8:0:7::1";
    const first = await begin("laptop", address);
    for (let each = 2; each <= 10; each++)
      expect((await begin("laptop", `2001:db8:0:7::${each}`)).code).toMatch(/-/);
    const refused = await send("authorize", {}, "2001:db8:0:7:ffff::1");
    expect([refused.status, refused.body.error]).toEqual([429, "temporarily_unavailable"]);
    expect((await send("authorize", {}, "2001:db8:0:8::1")).status).toBe(200);
    const { cookie } = await person();
    await decide(cookie, first.code);
    expect((await poll(first.device)).status).toBe(200);
    expect((await send("authorize", {}, address)).status).toBe(200);
    expect((await send("authorize", {}, address)).status).toBe(429);
  });

  test("are 100 of a site at most, whichever of its networks ask", async () => {
    for (let each = 0; each < 100; each++)
      expect((await send("authorize", {}, `2001:db8:1:${each.toString(16)}::1`)).status).toBe(200);
    const refused = await send("authorize", {}, "2001:db8:1:ffff::1");
    expect([refused.status, refused.body.error]).toEqual([429, "temporarily_unavailable"]);
    for (const address of ["2001:db8:2::1", "2001:db8:11::1", newAddress()])
      expect((await send("authorize", {}, address)).status).toBe(200);
    for (let each = 0; each < 100; each++)
      expect((await send("authorize", {}, `203.0.113.${each}`)).status).toBe(200);
    expect((await send("authorize", {}, "203.0.113.200")).status).toBe(429);
    expect((await send("authorize", {}, "203.0.114.1")).status).toBe(200);
  });

  const counted = () =>
    withRawData(server.dataDir, async (data) => {
      const [row] = await data.rows<{ count: number }>(
        "select count(*) as count from device_login where expires_at > ?",
        Date.now(),
      );
      return row?.count ?? 0;
    });
  /** Fills all places but some with undecided logins. */
  const fill = async (free: number, networkOf: (each: number) => string) => {
    const there = await counted();
    await withServerData(server, (store) =>
      store.write(SYSTEM, "test", async (tx) => {
        for (let each = there; each < 1_000 - free; each++) {
          await insertDeviceLogin(tx, {
            id: tx.newId(),
            device_hash: Buffer.from(`device ${each}`),
            user_mac: Buffer.from(`user ${each}`),
            machine: "",
            address: "",
            network: networkOf(each),
            expires_at: tx.now + 900_000,
            interval_ms: 5_000,
          });
        }
      }),
    );
  };
  const removeAll = () =>
    withServerData(server, (store) => removeOldDeviceLogins(store, Date.now() + 3 * 900_000));

  test("are 1,000 of all, and are removed after their end", async () => {
    await removeAll();
    await fill(1, (each) => `made-up ${each}`);
    expect((await send("authorize", {})).status).toBe(200);
    expect(await counted()).toBe(1_000);
    expect((await send("authorize", {})).status).toBe(429);
    await withServerData(server, (store) => removeOldDeviceLogins(store, Date.now()));
    expect(await counted()).toBe(1_000);
    await removeAll();
    expect(await counted()).toBe(0);
    expect((await send("authorize", {})).status).toBe(200);
  });

  test("of which somebody has taken all places from many addresses make way for others", async () => {
    await removeAll();
    const { cookie } = await person();
    const asked = await begin("laptop", "198.51.100.1");
    await fill(0, (each) => `192.0.${each % 50}.${each % 250}`);
    // The sites that fill the places get no more of them, and their oldest logins make way.
    expect((await send("authorize", {}, "192.0.7.251")).status).toBe(429);
    const late = await begin("laptop", "198.51.101.1");
    expect(await counted()).toBe(1_000);
    for (const { device, code } of [asked, late]) {
      expect((await decide(cookie, code)).status).toBe(200);
      expect((await poll(device)).status).toBe(200);
    }
    await removeAll();
  });
});

test("a device that polls too early writes nothing once its interval is as long as it gets", async () => {
  const { device } = await begin();
  expect(await errorOf(device)).toBe("authorization_pending");
  const polledAt = () =>
    withRawData(server.dataDir, async (data) => {
      const rows = await data.rows("select polled_at from device_login where interval_ms = 60000");
      return rows.map(({ polled_at }) => polled_at);
    });
  await withRawData(server.dataDir, (data) =>
    data.run("update device_login set interval_ms = 60000 where polled_at is not null"),
  );
  const before = await polledAt();
  expect(before.length).toBeGreaterThan(0);
  expect([await errorOf(device), await errorOf(device)]).toEqual(["slow_down", "slow_down"]);
  expect(await polledAt()).toEqual(before);
});

test("a device that waits is none that is refused, and one that guesses is", async () => {
  const strict = await startHostedServer({ args: ["--refusals-per-address", "20"] });
  const ask = (device_code: string) => send("token", { grant_type: GRANT, device_code }, "", strict);
  const waiting = await Promise.all([1, 2, 3, 4].map(() => send("authorize", {}, "", strict)));
  for (const { body } of waiting)
    expect((await ask(body.device_code)).body.error).toBe("authorization_pending");
  expect((await ask("cr_dev_guess")).status).toBe(400);
  await until(
    () => ask("cr_dev_guess"),
    ({ status }) => status === 429,
  );
});

test("nobody is asked to allow anything over plain http", async () => {
  const port = await freePort();
  await startHostedServer({ args: ["--port", String(port), "--base-url", "http://chartroom.example.org"] });
  const { status, body } = await send("authorize", {}, "", { url: `http://127.0.0.1:${port}` });
  expect([status, body]).toEqual([
    400,
    { error: "invalid_request", error_description: expect.stringMatching(/need TLS/) },
  ]);
});
