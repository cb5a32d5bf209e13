import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { addMember } from "../harness/member.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { originOf, page, signInLink } from "../harness/session.ts";
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
