import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { EventService } from "#gen/service/v1/event_service_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { GetProjectRequestSchema, ProjectService } from "#gen/service/v1/project_service_pb.js";
import packageJson from "../../package.json" with { type: "json" };
import { findViolations } from "../../packages/api/src/rules.ts";
import {
  type ClientOptions,
  Code,
  createClient,
  ErrorReason,
  failureOf,
} from "../../packages/client/src/index.ts";
import { CONTRACT } from "../../src/rpc/routes.ts";
import { collect } from "../harness/collect.ts";
import { addOrganization } from "../harness/organization.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** What a proxy does with a request: passes it on, loses the answer, or answers by itself. */
type Fate =
  | "pass"
  | "lose the answer"
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: object | string };

const proxies: Server[] = [];
afterEach(() => {
  for (const proxy of proxies.splice(0)) proxy.close();
});

/** Starts a proxy to the server that has a fate for each request in turn, and passes on all others. */
async function startProxy(...fates: Fate[]) {
  const seen: IncomingHttpHeaders[] = [];
  const proxy = createServer(async (req, res) => {
    seen.push(req.headers);
    const fate = fates.shift() ?? "pass";
    const body = await buffer(req);
    if (typeof fate === "object") {
      res.writeHead(fate.status, { "content-type": "application/json", ...fate.headers });
      res.end(typeof fate.body === "string" ? fate.body : JSON.stringify(fate.body ?? {}));
      return;
    }
    const { host, connection, ...headers } = req.headers as Record<string, string>;
    const answer = await fetch(server.url + req.url, { method: "POST", headers, body });
    const text = await answer.text();
    if (fate === "lose the answer") return req.socket.destroy();
    res.writeHead(answer.status, { "content-type": "application/json" });
    res.end(text);
  });
  proxies.push(proxy);
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, seen };
}

/** Returns a client of a new organization. */
async function clientOf(options: Partial<ClientOptions> = {}) {
  const { token } = await addOrganization(server, "A team with a client");
  return createClient({ server: server.url, token, ...options });
}

const named = (name: string) => ({
  initializer: {
    specs: [
      { spec: { case: "git" as const, value: { remoteUri: `https://git.example.org/team/${name}.git` } } },
    ],
  },
});
const LIST = ProjectService.method.listProjects;
const namesOf = (projects: readonly Pick<Project, "metadata">[]) =>
  projects.map(({ metadata }) => metadata?.name);
const tooManyCalls = {
  status: 429,
  headers: { "retry-after": "1" },
  body: {
    code: "resource_exhausted",
    // An ErrorDetail with the reason TOO_MANY_CALLS.
    details: [
      {
        type: "service.v1.ErrorDetail",
        value: Buffer.from([8, ErrorReason.TOO_MANY_CALLS]).toString("base64"),
      },
    ],
  },
};

describe("a call", () => {
  test("whose answer was lost is repeated by its key, and carried out once", async () => {
    const proxy = await startProxy("lose the answer", "lose the answer");
    const chartroom = await clientOf({ server: proxy.url });
    const { project } = await chartroom.service(ProjectService).createProject(named("once"));
    const keys = proxy.seen.map((headers) => headers["idempotency-key"]);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    const projects = await collect(chartroom.list(LIST, {}));
    expect(projects.map(({ id }) => id)).toEqual([project?.id]);
  });

  test("keeps a key of its caller's, and has none where it changes nothing", async () => {
    const proxy = await startProxy();
    const chartroom = await clientOf({ server: proxy.url });
    const projects = chartroom.service(ProjectService);
    const headers = { "Idempotency-Key": "mine" };
    await projects.createProject(named("kept"), { headers });
    await projects.listProjects({});
    expect(proxy.seen.map((each) => each["idempotency-key"])).toEqual(["mine", undefined]);
  });

  test("waits as long as a server says that wants fewer calls", async () => {
    const proxy = await startProxy(tooManyCalls);
    const chartroom = await clientOf({ server: proxy.url });
    const beganAt = performance.now();
    await chartroom.service(ProjectService).listProjects({});
    expect(performance.now() - beganAt).toBeGreaterThanOrEqual(995);
    expect(proxy.seen).toHaveLength(2);
  });

  test("goes on behind a proxy whose server is away for a moment", async () => {
    const proxy = await startProxy({ status: 503 }, { status: 502 });
    const chartroom = await clientOf({ server: proxy.url });
    await chartroom.service(ProjectService).listProjects({});
    expect(proxy.seen).toHaveLength(3);
  });

  test("is made once where repetitions are off, or the server refuses it", async () => {
    const proxy = await startProxy({ status: 503 });
    const once = await clientOf({ server: proxy.url, retryForMs: 0 });
    await expect(once.service(ProjectService).listProjects({})).rejects.toMatchObject({
      code: Code.Unavailable,
    });
    const refused = await clientOf({ server: proxy.url });
    await expect(refused.service(ProjectService).getProject({ projectId: "x" })).rejects.toMatchObject({
      code: Code.InvalidArgument,
    });
    expect(proxy.seen).toHaveLength(2);
  });

  test("ends with its time while the server cannot be reached", async () => {
    const chartroom = createClient({ server: "http://127.0.0.1:1", timeoutMs: 300 });
    await expect(chartroom.service(ProjectService).listProjects({})).rejects.toMatchObject({
      code: Code.DeadlineExceeded,
    });
    const projects = createClient({ server: "http://127.0.0.1:1", retryForMs: 0 }).service(ProjectService);
    await expect(projects.listProjects({})).rejects.toMatchObject({ code: Code.Unavailable });
  });

  test("asks for the token each time, and has none where there is none", async () => {
    const proxy = await startProxy({ status: 503 });
    let asked = 0;
    const { token } = await addOrganization(server, "A team whose tokens change");
    const tokens = async () => (asked++ === 0 ? "cr_pat_old" : token);
    await createClient({ server: proxy.url, token: tokens }).service(ProjectService).listProjects({});
    expect(proxy.seen.map(({ authorization }) => authorization)).toEqual([
      "Bearer cr_pat_old",
      `Bearer ${token}`,
    ]);
    const anonymous = createClient({ server: server.url }).service(ProjectService).listProjects({});
    const failure = failureOf(await anonymous.catch((thrown) => thrown));
    expect([failure.reason, failure.reasonName]).toEqual([ErrorReason.UNAUTHENTICATED, "UNAUTHENTICATED"]);
  });
});

describe("a call is not repeated", () => {
  const rejected = async (options: ClientOptions) => {
    const call = createClient(options).service(ProjectService).listProjects({});
    return failureOf(
      await call.then(
        () => undefined,
        (thrown) => thrown,
      ),
    );
  };

  test("whose token or interceptor fails as a program does", async () => {
    const proxy = await startProxy();
    let asked = 0;
    const fail = () => {
      asked += 1;
      throw new TypeError("a program's mistake");
    };
    const failure = { code: Code.Unknown, message: "a program's mistake" };
    expect(await rejected({ server: proxy.url, token: fail })).toMatchObject(failure);
    expect(await rejected({ server: proxy.url, interceptors: [fail] })).toMatchObject(failure);
    expect(asked).toBe(2);
    const { watchEvents } = EventService.method;
    const events = createClient({ server: proxy.url, token: fail }).watch(watchEvents, {});
    expect(failureOf(await collect(events).catch((thrown) => thrown))).toMatchObject(failure);
    expect([asked, proxy.seen]).toEqual([3, []]);
  });

  test("whose token no header can carry, which is not shown", async () => {
    const message = "the token has characters that no token has, such as the end of a line";
    expect(() => createClient({ server: server.url, token: "hidden\nrest" })).toThrow(new TypeError(message));
    expect(await rejected({ server: server.url, token: () => "hidden\nrest" })).toMatchObject({ message });
  });

  test("whose answer is a page", async () => {
    const proxy = await startProxy({ status: 200, body: "<html>" });
    expect(await rejected({ server: proxy.url })).toMatchObject({ code: Code.Unknown });
    expect(proxy.seen).toHaveLength(1);
  });

  test("whose server has a certificate that is not trusted", async () => {
    let calls = 0;
    const fetch = async () => {
      calls += 1;
      const cause = Object.assign(new Error("self-signed certificate"), {
        code: "DEPTH_ZERO_SELF_SIGNED_CERT",
      });
      throw new TypeError("fetch failed", { cause });
    };
    expect(await rejected({ server: server.url, fetch })).toMatchObject({ code: Code.Unknown });
    expect(calls).toBe(1);
  });
});

describe("a list", () => {
  test("is read element by element and page by page", async () => {
    const chartroom = await clientOf();
    const names = ["one", "two", "three", "four", "five"];
    for (const name of names) await chartroom.service(ProjectService).createProject(named(name));
    const request = { sort: { field: "id" }, pagination: { pageSize: 2 } };
    expect(namesOf(await collect(chartroom.list(LIST, request)))).toEqual(names);
    expect(namesOf(await collect(chartroom.list(LIST, { sort: { field: "id" } })))).toEqual(names);
    const pages = await collect(chartroom.pages(LIST, request));
    expect(pages.map(({ projects }) => namesOf(projects))).toEqual([
      ["one", "two"],
      ["three", "four"],
      ["five"],
    ]);
    const token = pages[0]?.pagination?.nextToken ?? "";
    const rest = chartroom.list(LIST, { ...request, pagination: { pageSize: 2, token } });
    expect(namesOf(await collect(rest))).toEqual(names.slice(2));
  });

  test("is every operation of the contract that has pages", () => {
    const paged = CONTRACT.flatMap(({ methods }) => methods).filter(({ output }) => output.field.pagination);
    const lists = paged.map(({ name, input, output }) => [
      name,
      input.field.pagination !== undefined,
      output.fields.filter(({ fieldKind }) => fieldKind === "list").length,
    ]);
    expect(lists.length).toBeGreaterThan(20);
    expect(lists).toEqual(paged.map(({ name }) => [name, true, 1]));
  });

  test("is no other operation", async () => {
    const chartroom = await clientOf();
    const read = collect(chartroom.list(ProjectService.method.getProject, { projectId: "x" }));
    await expect(read).rejects.toThrow("GetProject returns no pages");
  });
});

describe("a failure", () => {
  test("has its reason, and the rules that a request does not keep, as the rules themselves find them", async () => {
    const chartroom = await clientOf();
    const thrown = await chartroom
      .service(ProjectService)
      .getProject({ projectId: "x" })
      .catch((error) => error);
    const violations = findViolations(GetProjectRequestSchema, { projectId: "x" });
    expect(violations).toEqual([
      { field: "project_id", ruleId: "string.uuid", message: "must be a valid UUID" },
    ]);
    expect(failureOf(thrown)).toEqual({
      code: Code.InvalidArgument,
      reason: ErrorReason.CONSTRAINT_VIOLATED,
      reasonName: "CONSTRAINT_VIOLATED",
      metadata: { violations: "1" },
      violations,
      message: "must be a valid UUID [projectId]",
      requestId: expect.stringMatching(/./),
    });
  });

  test("of something else has no reason", () => {
    expect(failureOf(new Error("other"))).toMatchObject({
      reason: ErrorReason.UNSPECIFIED,
      reasonName: "UNSPECIFIED",
      metadata: {},
      violations: [],
      message: "other",
      requestId: "",
    });
  });
});

test("the server tells its version, and something else is no server", async () => {
  const { version } = packageJson;
  const chartroom = createClient({ server: `${server.url}/` });
  expect(await chartroom.serverVersion()).toEqual({ name: "chartroom", version });
  const proxy = await startProxy({ status: 200, body: { name: "other" } });
  await expect(createClient({ server: proxy.url }).serverVersion()).rejects.toMatchObject({
    code: Code.Unimplemented,
  });
});
