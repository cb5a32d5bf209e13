import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { addMember } from "../harness/member.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { originOf, page, signIn, signInLink } from "../harness/session.ts";
import { startServers } from "../harness/several-servers.ts";
import { watch } from "../harness/watch.ts";

let cluster: PostgresCluster;
let servers: TestServer[];
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  servers = await startServers(await emptyDatabase(cluster), 2);
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

const WHOAMI = "IdentityService/GetAuthenticatedIdentity";

test("a person who is signed in at two servers is signed out of both by a block, streams too", async () => {
  const [one, other] = servers as [TestServer, TestServer];
  const { organizationId } = await succeeded(post(one, WHOAMI));
  let fastest = Number.POSITIVE_INFINITY;
  // The machine may stand still during one of them, and not during each.
  for (let attempt = 1; fastest > 1_000 && attempt <= 20; attempt++) {
    const email = `ann${attempt}@example.org`;
    const person = await addMember(one, { organizationId, email });
    const secret = await signInLink(one, email);
    // The link that one server printed signs in at the other, once for both.
    const signedIn = await page(other, "session", { secret });
    const [cookie = ""] = signedIn.header.get("set-cookie")?.split(";") ?? [];
    expect((await page(one, "session", { secret })).status).toBe(401);
    const whoami = (server: TestServer) => post(server, WHOAMI, {}, "", { cookie, origin: originOf(server) });
    const streams = servers.map((server) =>
      watch(
        createConnectTransport({
          baseUrl: `${server.url}/api`,
          httpVersion: "1.1",
          interceptors: [
            (next) => (req) => {
              req.header.delete("authorization");
              req.header.set("cookie", cookie);
              req.header.set("origin", originOf(server));
              return next(req);
            },
          ],
        }),
        "",
      ),
    );
    await Promise.all(streams.map(({ opened }) => opened));
    for (const server of servers) expect((await whoami(server)).status).toBe(200);
    await succeeded(
      post(one, "AccountService/BlockAccount", { accountId: person.accountId, reason: "left" }),
    );
    const blockedAt = performance.now();
    for (const server of servers) expect((await whoami(server)).status).toBe(401);
    await Promise.all(streams.map((stream) => stream.ended));
    fastest = Math.min(fastest, performance.now() - blockedAt);
  }
  expect(fastest).toBeLessThan(1_000);
});

test("a device that began at one server is allowed at the other, and gets its token at either, once", async () => {
  const [one, other] = servers as [TestServer, TestServer];
  const { organizationId } = await succeeded(post(one, WHOAMI));
  const { userId, token } = await addMember(one, { organizationId, email: "device@example.org" });
  const send = async (server: TestServer, path: string, form: Readonly<Record<string, string>>) => {
    const body = new URLSearchParams(form);
    const res = await fetch(`${server.url}/sign-in/device/${path}`, { method: "POST", body });
    return { status: res.status, body: (await res.json()) as Record<string, string> };
  };
  const { device_code = "", user_code: code } = (await send(one, "authorize", {})).body;
  const { cookie } = await signIn(other, token);
  expect((await page(other, "device/decide", { code, allow: true }, { cookie })).status).toBe(200);
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const answers = await Promise.all(
    [one, other, one, other].map((server) => send(server, "token", { grant_type, device_code })),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400]);
  const made = answers.find(({ status }) => status === 200)?.body.access_token;
  expect((await post(other, WHOAMI, {}, made)).body.subject.id).toBe(userId);
});
