import { once } from "node:events";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import {
  type ReachableServer,
  startHostedServer,
  startServer,
  stopAll,
  type TestServer,
} from "../harness/server.ts";

const CONSOLE = "https://console.example.org";
const OTHER = "http://localhost:3000";
const STRANGER = "https://elsewhere.example.org";

let server: ReachableServer;
let closed: TestServer;
beforeAll(async () => {
  [server, closed] = await Promise.all([
    startHostedServer({ args: ["--cors-origins", `${CONSOLE}, ${OTHER}`] }),
    startServer(),
  ]);
});
afterAll(stopAll);

describe("probes", () => {
  test.each(["/healthz", "/readyz"])("%s is well, needs no token and is not kept", async (path) => {
    const res = await fetch(server.url + path);
    expect([res.status, await res.json()]).toEqual([200, { status: "ok" }]);
    expect(res.headers.get("cache-control")).toBe("no-store");
  });

  test("are not logged", async () => {
    await fetch(`${closed.url}/readyz`);
    const { header } = await post(closed, "ProjectService/ListProjects");
    // The line of a later call is there; one of the probe would be before it.
    const requestId = String(header.get("x-request-id"));
    while (!closed.logText().includes(requestId)) await once(closed.process.stderr as Readable, "data");
    expect(closed.logText()).not.toContain("readyz");
  });

  test("are not under /api", async () => {
    expect((await fetch(`${server.url}/api/healthz`)).status).toBe(401);
  });
});

const PATH = "/api/service.v1.ProjectService/ListProjects";

/** What the answer says to a browser. */
const allowances = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith("access-control-")));

function preflight(to: ReachableServer, origin: string): Promise<Response> {
  return fetch(to.url + PATH, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,connect-protocol-version",
    },
  });
}

describe("a page of another origin", () => {
  test.each([CONSOLE, OTHER])("that is named may ask what it may do: %s", async (origin) => {
    const res = await preflight(server, origin);
    const allowed = allowances(res);
    expect([res.status, allowed["access-control-allow-origin"]]).toEqual([204, origin]);
    expect(allowed["access-control-allow-methods"]).toBe("POST");
    expect(allowed["access-control-max-age"]).toBe("7200");
    const headers = allowed["access-control-allow-headers"]?.toLowerCase().split(", ");
    expect(headers).toEqual(
      expect.arrayContaining([
        "authorization",
        "content-type",
        "connect-protocol-version",
        "connect-timeout-ms",
        "grpc-timeout",
        "x-grpc-web",
        "idempotency-key",
      ]),
    );
    expect(allowed["access-control-allow-credentials"]).toBeUndefined();
    expect(res.headers.get("vary")).toBe("Origin");
  });

  test("that is named may read answers and errors, with the headers that clients need", async () => {
    for (const [token, status] of [
      [server.token, 200],
      ["cr_pat_nobody", 401],
    ] as const) {
      const answer = await post(server, "ProjectService/ListProjects", {}, token, { origin: CONSOLE });
      expect([answer.status, answer.header.get("access-control-allow-origin")]).toEqual([status, CONSOLE]);
      const exposed = answer.header.get("access-control-expose-headers")?.toLowerCase().split(", ");
      expect(exposed).toEqual(expect.arrayContaining(["x-request-id", "grpc-status", "grpc-message"]));
    }
  });

  test("that is named may read the version, which needs no token", async () => {
    const res = await fetch(`${server.url}/version`, { headers: { origin: CONSOLE } });
    expect([res.status, res.headers.get("access-control-allow-origin")]).toEqual([200, CONSOLE]);
    const stranger = await fetch(`${server.url}/version`, { headers: { origin: STRANGER } });
    expect(allowances(stranger)).toEqual({});
  });

  test.each([STRANGER, "null", `${CONSOLE}.evil.example`, CONSOLE.toUpperCase(), "https://example.org"])(
    "that is not named learns nothing: %s",
    async (origin) => {
      expect(allowances(await preflight(server, origin))).toEqual({});
      const answer = await post(server, "ProjectService/ListProjects", {}, server.token, { origin });
      expect([...answer.header.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
    },
  );

  test("learns nothing where no origin is named, and its author what to set", async () => {
    const res = await preflight(closed, CONSOLE);
    expect([res.status, allowances(res)]).toEqual([405, {}]);
    expect((await res.json()).message).toContain("--cors-origins");
  });
});
