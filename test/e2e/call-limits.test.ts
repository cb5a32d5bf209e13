import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, describe, expect, test } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { type HostedServer, runHostedCommand, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { deliver, MANUAL, ONE_COMMAND } from "../harness/webhook.ts";

afterAll(stopAll);

const list = (server: HostedServer, token = server.token, headers = {}) =>
  post(server, "ProjectService/ListProjects", {}, token, headers);
/** The limit of one call, after which the next may come in ten minutes. */
const ONE = "1";
const scopeOf = ({ body }: Answer) =>
  body.details.find(({ type }: { type: string }) => type === "service.v1.ErrorDetail").debug.metadata.scope;

function expectRefusal(answer: Answer, scope: string): void {
  expect([answer.status, answer.body.code, reasonOf(answer), scopeOf(answer)]).toEqual([
    429,
    "resource_exhausted",
    "TOO_MANY_CALLS",
    scope,
  ]);
  const seconds = Number(answer.header.get("retry-after"));
  expect(seconds).toBeGreaterThan(300);
  expect(answer.header.get("ratelimit")).toBe(`"${scope}";r=0;t=${seconds}`);
}

/** Makes a token of the same account without a call. */
async function anotherToken({ dataDir }: HostedServer): Promise<string> {
  const { stdout } = await runHostedCommand(["token", "create", "--data-dir", dataDir]);
  return /cr_pat_\w+/.exec(stdout)?.[0] ?? "";
}

describe("calls past the limit", () => {
  test("of a token are refused, in the form of each protocol, and those of another token are not", async () => {
    const server = await startHostedServer({ args: ["--calls-per-token", ONE] });
    const first = await list(server);
    expect([first.status, first.header.get("ratelimit-policy")]).toEqual([200, '"token";q=1;w=60']);
    expect(first.header.get("ratelimit")).toMatch(/^"token";r=0;t=\d+$/);
    expectRefusal(await list(server), "token");
    const client = createClient(ProjectService, createGrpcTransport({ baseUrl: server.url }));
    const refused = await client
      .listProjects({}, { headers: { authorization: `Bearer ${server.token}` } })
      .catch(ConnectError.from);
    expect(refused).toBeInstanceOf(ConnectError);
    const error = refused as ConnectError;
    expect([error.code, error.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
      Code.ResourceExhausted,
      ErrorReason.TOO_MANY_CALLS,
    ]);
    expect(Number(error.metadata.get("retry-after"))).toBeGreaterThan(300);
    expect((await list(server, await anotherToken(server))).status).toBe(200);
  });

  test("of an account are refused with each of its tokens", async () => {
    const server = await startHostedServer({ args: ["--calls-per-account", ONE] });
    expect((await list(server)).status).toBe(200);
    expectRefusal(await list(server, await anotherToken(server)), "account");
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  });

  test("of a token that provisions by SCIM are refused in its form, and say when the token ends", async () => {
    const server = await startHostedServer({ args: ["--calls-per-token", ONE] });
    const account = { name: "Provider", validUntil: "2999-12-31T00:00:00Z", provisioning: true };
    const created = await post(server, "ServiceAccountService/CreateServiceAccount", account, server.token);
    const { token } = (
      await post(
        server,
        "ServiceAccountService/CreateServiceAccountToken",
        { serviceAccountId: created.body.serviceAccount.id, validFor: "86400s" },
        await anotherToken(server),
      )
    ).body;
    const users = () =>
      fetch(`${server.url}/scim/v2/Users`, { headers: { authorization: `Bearer ${token}` } });
    const first = await users();
    expect([first.status, first.headers.get("token-expires-at")]).toEqual([200, expect.any(String)]);
    const second = await users();
    expect([second.status, (await second.json()).status]).toEqual([429, "429"]);
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(300);
  });

  test("of the default are none that a client meets, nor does it hear of limits", async () => {
    const server = await startHostedServer();
    const answers = await Promise.all(Array.from({ length: 200 }, () => list(server)));
    for (const { status, header } of answers) expect([status, header.get("ratelimit")]).toEqual([200, null]);
  });

  test("are answered where limits are off", async () => {
    const limits = ["--calls-per-token", ONE, "--calls-per-account", ONE, "--refusals-per-address", ONE];
    const server = await startHostedServer({ args: [...limits, "--rate-limits", "off"] });
    for (let calls = 0; calls < 3; calls++) {
      expect((await list(server, "cr_pat_wrong")).status).toBe(401);
      const { status, header } = await list(server);
      expect([status, header.get("ratelimit")]).toEqual([200, null]);
    }
  });
});

test("an organization that floods a server takes nothing from one that calls it now and then", async () => {
  // Ten calls a second.
  const server = await startHostedServer({ args: ["--calls-per-server", "600"] });
  const { token } = await addOrganization(server, "Harbour");
  const flooding = new AbortController();
  const refusals: Answer[] = [];
  const flood = Array.from({ length: 8 }, async () => {
    while (!flooding.signal.aborted) {
      const answer = await list(server);
      if (answer.status !== 200) refusals.push(answer);
    }
  });
  const answered: number[] = [];
  for (let calls = 1; calls <= 6; calls++) {
    // Four in a second at most, which is less than a share of five.
    await delay(250);
    await until(
      () => refusals.length,
      (length) => length >= calls * 10,
    );
    answered.push((await list(server, token)).status);
  }
  flooding.abort();
  await Promise.all(flood);
  expect(answered).toEqual([200, 200, 200, 200, 200, 200]);
  const scopes = new Set(refusals.map((answer) => `${answer.status} ${reasonOf(answer)} ${scopeOf(answer)}`));
  expect([...scopes]).toEqual(["429 TOO_MANY_CALLS organization"]);
});

test("deliveries with a token are calls of that token", async () => {
  const server = await startHostedServer({ args: ["--calls-per-token", ONE] });
  const request = { name: "Nightly", triggers: [MANUAL], action: ONE_COMMAND };
  const { body } = await post(server, "WorkflowService/CreateWorkflow", request, server.token);
  const headers = { authorization: `Bearer ${await anotherToken(server)}` };
  const run = () => deliver(server, body.workflow.id, "{}", headers);
  expect((await run()).status).toBe(202);
  expectRefusal(await run(), "token");
});

describe("an address with too many refusals", () => {
  const PROXY = ["--trusted-proxies", "127.0.0.1", "--refusals-per-address", ONE];
  const from = (address: string) => ({ "x-forwarded-for": address });

  test("is not looked at, whatever it asks for, and others are", async () => {
    const server = await startHostedServer({ args: PROXY });
    const bad = from("2001:db8::1");
    expect((await list(server, "cr_pat_wrong", bad)).status).toBe(401);
    // The refusal is counted when its answer has been sent.
    const refused = await until(
      () => list(server, server.token, bad),
      ({ status }) => status === 429,
    );
    expectRefusal(refused, "address");
    expect(refused.header.get("ratelimit-policy")).toBe('"address";q=1;w=60');
    // All of the network of 64 bits, which one has whole.
    expectRefusal(await list(server, server.token, from("2001:db8::2:1")), "address");
    for (const path of ["/sign-in", "/workflows/x/webhooks"]) {
      const res = await fetch(server.url + path, { method: "POST", headers: bad });
      expect([res.status, (await res.json()).code]).toEqual([429, "resource_exhausted"]);
      expect(Number(res.headers.get("retry-after"))).toBeGreaterThan(300);
    }
    expect((await fetch(`${server.url}/readyz`, { headers: bad })).status).toBe(200);
    expect((await list(server, server.token, from("2001:db8:0:1::1"))).status).toBe(200);
    expect((await list(server, server.token, from("192.0.2.1"))).status).toBe(200);
  });

  test("is one of requests without a valid token: other errors of a caller do not count", async () => {
    const server = await startHostedServer({ args: ["--refusals-per-address", ONE] });
    for (let calls = 0; calls < 3; calls++) {
      const { status } = await post(server, "ProjectService/GetProject", { projectId: "x" });
      expect(status).toBe(400);
    }
    expect((await list(server)).status).toBe(200);
  });
});

describe("connections of one address", () => {
  /** Opens a connection, and keeps it after an answer on it. @returns undefined when it was closed without one */
  async function open(server: HostedServer): Promise<Socket | undefined> {
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    const answered = once(socket, "data").then(
      () => true,
      () => false,
    );
    const closed = once(socket, "close").then(() => false);
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return (await Promise.race([answered, closed])) ? socket : undefined;
  }

  test("are as many as the limit, and a further one when one is closed", async () => {
    const server = await startHostedServer({ args: ["--connections-per-address", "2"] });
    const [one, other] = [await open(server), await open(server)];
    expect([one, other]).not.toContain(undefined);
    expect(await open(server)).toBeUndefined();
    one?.destroy();
    const next = await until(() => open(server), Boolean);
    next?.destroy();
    other?.destroy();
  });

  test("of a trusted proxy are as many as come", async () => {
    const args = ["--connections-per-address", "1", "--trusted-proxies", "127.0.0.0/8"];
    const server = await startHostedServer({ args });
    const all = [await open(server), await open(server), await open(server)];
    expect(all).not.toContain(undefined);
    for (const socket of all) socket?.destroy();
  });
});
