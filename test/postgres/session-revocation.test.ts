import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { addMember, type TestMember } from "../harness/member.ts";
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

/** Ends what a person has at the first server, as an administrator or a provider does. */
const ENDS: Readonly<Record<string, (at: TestServer, person: TestMember) => Promise<number>>> = {
  "a block": async (at, { accountId }) =>
    (await post(at, "AccountService/BlockAccount", { accountId, reason: "left" })).status,
  "a deactivation by SCIM": async (at, { userId }) => {
    const Operations = [{ op: "Replace", path: "active", value: "False" }];
    const answer = await fetch(`${at.url}/scim/v2/Users/${userId}`, {
      method: "PATCH",
      headers: {
        authorization: `Bearer ${await provisionerAt(at)}`,
        "content-type": "application/scim+json",
      },
      body: JSON.stringify({ schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], Operations }),
    });
    await answer.arrayBuffer();
    return answer.status;
  },
};

let provisioner: Promise<string> | undefined;
/** The token of what provisions the organization. */
function provisionerAt(at: TestServer): Promise<string> {
  provisioner ??= (async () => {
    const request = { name: "Provider", provisioning: true, validUntil: "2999-12-31T00:00:00Z" };
    const made = await succeeded(post(at, "ServiceAccountService/CreateServiceAccount", request));
    const serviceAccountId = made.serviceAccount.id;
    return (
      await succeeded(post(at, "ServiceAccountService/CreateServiceAccountToken", { serviceAccountId }))
    ).token;
  })();
  return provisioner;
}

test.each(Object.entries(ENDS))(
  "a person at two servers has no session, token and stream at either after %s",
  async (what, end) => {
    const [one, other] = servers as [TestServer, TestServer];
    const { organizationId } = await succeeded(post(one, WHOAMI));
    if (what.includes("SCIM")) await provisionerAt(one);
    let fastest = Number.POSITIVE_INFINITY;
    // The machine may stall during one of them, and not during each.
    for (let attempt = 1; fastest > 1_000 && attempt <= 20; attempt++) {
      const email = `ann${attempt}.${Object.keys(ENDS).indexOf(what)}@example.org`;
      const person = await addMember(one, { organizationId, email });
      const secret = await signInLink(one, email);
      // The link that one server printed signs in at the other, once for both.
      const signedIn = await page(other, "session", { secret });
      const [cookie = ""] = signedIn.header.get("set-cookie")?.split(";") ?? [];
      expect((await page(one, "session", { secret })).status).toBe(401);
      const whoami = (server: TestServer) =>
        post(server, WHOAMI, {}, "", { cookie, origin: originOf(server) });
      const byToken = (server: TestServer) => post(server, WHOAMI, {}, person.token);
      const streams = servers.flatMap((server) => [
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
        watch(createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" }), person.token),
      ]);
      await Promise.all(streams.map(({ opened }) => opened));
      for (const server of servers) {
        expect([(await whoami(server)).status, (await byToken(server)).status]).toEqual([200, 200]);
      }
      expect(await end(one, person)).toBe(200);
      const endedAt = performance.now();
      for (const server of servers) {
        expect((await whoami(server)).status).toBe(401);
        expect([401, 403]).toContain((await byToken(server)).status);
      }
      await Promise.all(streams.map((stream) => stream.ended));
      fastest = Math.min(fastest, performance.now() - endedAt);
    }
    expect(fastest).toBeLessThan(1_000);
  },
);

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
  expect((await page(other, "device/decide", { code, allow: true, userId }, { cookie })).status).toBe(200);
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const answers = await Promise.all(
    [one, other, one, other].map((server) => send(server, "token", { grant_type, device_code })),
  );
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400]);
  const made = answers.find(({ status }) => status === 200)?.body.access_token;
  expect((await post(other, WHOAMI, {}, made)).body.subject.id).toBe(userId);
});
