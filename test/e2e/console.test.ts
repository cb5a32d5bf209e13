import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { originOf } from "../harness/session.ts";

// Whether the console has been built makes no difference here; src/http/console has the tests of its files.

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

interface Answer {
  readonly status: number;
  readonly header: IncomingMessage["headers"];
  readonly body: string;
}

/** A request as a program writes it, whose path is sent as written. */
async function send(path: string, method = "GET", headers: Record<string, string> = {}): Promise<Answer> {
  const host = new URL(originOf(server)).host;
  const req = request({ port: server.port, host: "127.0.0.1", path, method, headers: { host, ...headers } });
  req.end();
  const [res] = (await once(req, "response")) as [IncomingMessage];
  const body = (await res.toArray()).join("");
  return { status: res.statusCode ?? 0, header: res.headers, body };
}

const withToken = () => ({ authorization: `Bearer ${server.token}` });

const PAGES = [
  "/",
  "/?a=b",
  "/agents",
  "/agents/0190c0de-0000-7000-8000-000000000000?tab=changes",
  "/account/",
];

describe("the console's pages", () => {
  test.each(PAGES)("are one page that is never stored: %s", async (path) => {
    const { status, header, body } = await send(path);
    expect([status, header["content-type"], header["cache-control"]]).toEqual([
      200,
      "text/html; charset=utf-8",
      "no-store",
    ]);
    expect(body).toMatch(/^<!doctype html>/);
    expect(header).toMatchObject({
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    });
    expect(await send(path, "HEAD")).toMatchObject({ status: 200, body: "" });
  });

  test("have a policy with a nonce of their own in each answer", async () => {
    const policies = await Promise.all([send("/"), send("/"), send("/approvals")]);
    const nonces = policies.map(({ header }) => {
      const policy = String(header["content-security-policy"]);
      const nonce = /'nonce-([\w-]{22})'/.exec(policy)?.[1] ?? "";
      expect(policy.replace(nonce, "N")).toBe(
        "default-src 'none'; script-src 'self'; style-src-elem 'self' 'nonce-N'; style-src-attr 'unsafe-inline'; " +
          "worker-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; " +
          "form-action 'none'; frame-ancestors 'none'",
      );
      return nonce;
    });
    expect(new Set(nonces).size).toBe(3);
  });

  test("send a browser from an address of this machine to the name of sessions, and nowhere else", async () => {
    for (const host of [`127.0.0.1:${server.port}`, `localhost:${server.port}`, `[::1]:${server.port}`]) {
      const { status, header } = await send("/agents/x?tab=a", "GET", { host });
      expect([status, header.location]).toEqual([302, `${originOf(server)}/agents/x?tab=a`]);
    }
    expect(await send("/", "GET", { host: "evil.example.org" })).toMatchObject({ status: 200 });
  });
});

describe("the reference", () => {
  test.each([
    ["/openapi.json", "application/json", '"openapi": "3.1.0"'],
    ["/docs/api", "text/html; charset=utf-8", "ProjectService"],
    ["/docs/api/?q=project", "text/html; charset=utf-8", "ProjectService"],
    ["/docs/api/ProjectService", "text/html; charset=utf-8", "CreateProject"],
    ["/docs/api/types/service.v1.Project", "text/html; charset=utf-8", "<code>metadata</code>"],
    ["/docs/api/failures", "text/html; charset=utf-8", "ERROR_REASON_NOT_FOUND"],
    ["/docs/api/reference.js", "text/javascript; charset=utf-8", "location.origin"],
    ["/docs/api/reference.css", "text/css; charset=utf-8", "color-scheme"],
  ])("has %s for everybody, to be kept for a while", async (path, type, part) => {
    const { status, header, body } = await send(path);
    expect([status, header["content-type"], header["cache-control"]]).toEqual([
      200,
      type,
      "public, max-age=300",
    ]);
    expect(body).toContain(part);
    expect(header).toMatchObject({
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'self'; " +
        "frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      vary: "Accept-Encoding",
    });
    const unchanged = await send(path, "GET", { "if-none-match": header.etag ?? "" });
    expect([unchanged.status, unchanged.body]).toEqual([304, ""]);
    expect(await send(path, "HEAD")).toMatchObject({ status: 200, body: "" });
    const packed = await fetch(`http://127.0.0.1:${server.port}${path}`);
    expect([packed.headers.get("content-encoding"), await packed.text()]).toEqual(["gzip", body]);
  });

  test("has no other pages, and takes nothing", async () => {
    for (const path of ["/docs/api/Nothing", "/docs/api/types/constructor", "/docs/api/../package.json"]) {
      expect(await send(path)).toMatchObject({ status: 404, header: { "cache-control": "no-store" } });
    }
    expect(await send("/docs")).toMatchObject({ status: 401 });
    expect(await send("/openapi.json", "POST")).toMatchObject({ status: 401 });
  });

  test("has calls that work as they are pasted", async () => {
    const { body } = await send("/docs/api/IdentityService");
    const [, call = ""] = /<pre class="call">([^<]*)<\/pre>/.exec(body) ?? [];
    const pasted = call.replaceAll("&quot;", '"').replace("http://127.0.0.1:8080", server.url);
    const env = { ...process.env, TOKEN: server.token };
    const answer = execFileSync("bash", ["-c", pasted], { env, encoding: "utf8", stdio: "pipe" });
    expect(JSON.parse(answer).subject.principal).toBe("PRINCIPAL_USER");
  });
});

describe("everything else is as it was without a console:", () => {
  test.each([
    "/agentsx",
    "/nothing",
    "/favicon.ico",
    "/api",
    "/api/agents",
    "//agents",
    "/assets",
    "/assets/",
  ])("GET %s", async (path) => {
    expect(await send(path)).toMatchObject({ status: 401 });
    const known = await send(path, "GET", withToken());
    expect([known.status, JSON.parse(known.body).code]).toEqual([404, "not_found"]);
  });

  test.each(["POST", "PUT", "DELETE", "PATCH"])("%s of each of its addresses", async (method) => {
    for (const path of [...PAGES, "/assets/index.js"]) {
      expect(await send(path, method)).toMatchObject({ status: 401 });
      const known = await send(path, method, { ...withToken(), "content-type": "application/json" });
      expect([path, known.status, JSON.parse(known.body).code]).toEqual([path, 404, "not_found"]);
    }
  });

  test("operations, webhooks and probes", async () => {
    const operation = await send("/api/service.v1.ProjectService/GetProject", "GET", withToken());
    expect([operation.status, operation.header.allow]).toEqual([405, "POST"]);
    const webhook = await send("/workflows/0190c0de-0000-7000-8000-000000000000/webhooks");
    expect([webhook.status, webhook.header.allow]).toEqual([405, "POST"]);
    expect(await send("/healthz")).toMatchObject({
      status: 200,
      header: { "content-type": "application/json" },
    });
  });

  test("files that are none of its own", async () => {
    for (const path of [
      "/assets/nothing.js",
      "/assets/../package.json",
      "/assets/%2e%2e/package.json",
      "/assets/..%2findex.html",
    ]) {
      const { status, body, header } = await send(path);
      expect([path, status, JSON.parse(body).code]).toEqual([path, 404, "not_found"]);
      expect(header["cache-control"]).toBe("no-store");
    }
  });
});
