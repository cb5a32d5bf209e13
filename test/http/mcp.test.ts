import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { originOf, signIn, signInLink } from "../harness/session.ts";

const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const MAX_BYTES = 1_048_576;
const PAGES = "https://tools.example.org";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer({ args: ["--cors-origins", PAGES] });
});
afterAll(stopAll);

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Sends a request of a client of an earlier revision, which needs no headers of its own. */
async function send({
  method = "POST",
  path = "/mcp",
  token = server.token,
  headers,
  body = LIST,
}: Sent = {}) {
  const res = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      accept: "application/json, text/event-stream",
      ...(method === "POST" && { "content-type": "application/json" }),
      ...(token !== "" && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(method === "POST" && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await res.text();
  // One event, in what a server of earlier revisions streams.
  const json = /^data: (.*)$/m.exec(text)?.[1] ?? text;
  return { status: res.status, header: res.headers, body: json === "" ? undefined : JSON.parse(json) };
}

async function refused(sent: Sent) {
  const { status, body } = await send(sent);
  return [status, body?.error?.data?.reason?.replace("ERROR_REASON_", "")];
}

test("a message is answered without a handshake before it", async () => {
  const { status, header, body } = await send();
  expect([status, body.id, body.result.tools.length]).toEqual([200, 1, 14]);
  expect(header.get("cache-control")).toBe("no-store");
  expect(header.get("mcp-session-id")).toBe(null);
});

describe("a caller", () => {
  test("is known by its token alone", async () => {
    const { status, header, body } = await send({ token: "" });
    expect([status, header.get("www-authenticate"), body.error.data.reason]).toEqual([
      401,
      'Bearer realm="chartroom"',
      "ERROR_REASON_UNAUTHENTICATED",
    ]);
    expect(await refused({ token: "cr_pat_none" })).toEqual([401, "UNAUTHENTICATED"]);
    // Nothing of a request is looked at before.
    expect(await refused({ token: "", body: "no JSON" })).toEqual([401, "UNAUTHENTICATED"]);
    expect(await refused({ token: "", method: "GET" })).toEqual([401, "UNAUTHENTICATED"]);
  });

  test("is not known by a session, on the console's own page neither", async () => {
    const session = await signIn(server, await signInLink(server, "admin@localhost"));
    const headers = { ...session, origin: originOf(server) };
    expect(await refused({ token: "", headers })).toEqual([401, "UNAUTHENTICATED"]);
  });

  test("is not known by a query", async () => {
    const path = `/mcp?access_token=${server.token}`;
    expect(await refused({ token: "", path })).toEqual([401, "UNAUTHENTICATED"]);
    expect(await refused({ path: "/mcp?access_token=x" })).toEqual([400, "VALUE_UNUSABLE"]);
  });
});

describe("a page", () => {
  test("of the server's own origin, and of one that is named, may call", async () => {
    for (const origin of [server.url, originOf(server), PAGES]) {
      expect([origin, (await send({ headers: { origin } })).status]).toEqual([origin, 200]);
    }
  });

  test("of any other origin may not, no matter whose token it is", async () => {
    for (const origin of ["https://elsewhere.example.org", "null", `${PAGES}.example.com`]) {
      expect([origin, ...(await refused({ headers: { origin } }))]).toEqual([
        origin,
        403,
        "PERMISSION_DENIED",
      ]);
    }
  });

  test("may ask with the headers of the protocol", async () => {
    const res = await fetch(`${server.url}/mcp`, {
      method: "OPTIONS",
      headers: {
        origin: PAGES,
        "access-control-request-method": "POST",
        "access-control-request-headers": "mcp-method",
      },
    });
    const allowed = res.headers.get("access-control-allow-headers")?.toLowerCase().split(", ");
    expect(allowed).toEqual(expect.arrayContaining(["mcp-method", "mcp-name", "mcp-protocol-version"]));
  });
});

/** The parameters of a handshake. */
const initializing = (clientInfo: object, capabilities: object = {}) => ({
  protocolVersion: "2025-06-18",
  capabilities,
  clientInfo: { name: "a test", version: "1.0.0", ...clientInfo },
});

describe("a message", () => {
  test.each(["GET", "DELETE", "PUT"])("is not sent by %s: there is no session", async (method) => {
    const { status, header, body } = await send({ method });
    expect([status, header.get("allow"), body.error.data.reason]).toEqual([
      405,
      "POST",
      "ERROR_REASON_TRANSPORT_UNSUPPORTED",
    ]);
  });

  test("has at most 1 MiB", async () => {
    const padded = (bytes: number) => JSON.stringify(LIST).padEnd(bytes);
    expect((await send({ body: padded(MAX_BYTES) })).status).toBe(200);
    expect(await refused({ body: padded(MAX_BYTES + 1) })).toEqual([429, "BODY_TOO_LARGE"]);
  });

  test("has at most 64 levels", async () => {
    const nested = (levels: number) =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}}`;
    // The message, its parameters and what they carry are three.
    expect((await send({ body: nested(61) })).status).toBe(200);
    expect(await refused({ body: nested(62) })).toEqual([400, "BODY_TOO_COMPLEX"]);
    expect(await refused({ body: nested(200_000) })).toEqual([400, "BODY_TOO_COMPLEX"]);
  });

  test("has at most 20,000 parts", async () => {
    // Four brackets and three commas are around the elements, and between these one comma fewer than they are.
    const listing = (parts: number) =>
      JSON.stringify({ ...LIST, params: { _meta: { a: Array(parts - 6).fill(1) } } });
    expect((await send({ body: listing(20_000) })).status).toBe(200);
    expect(await refused({ body: listing(20_001) })).toEqual([400, "BODY_TOO_COMPLEX"]);
  });

  test("is one, and no batch, which would count as one call", async () => {
    for (const body of ["no JSON", "", "null", "7", JSON.stringify([LIST, LIST]), "[]", '"\ud800"']) {
      expect([body, ...(await refused({ body }))]).toEqual([body, 400, "BODY_MALFORMED"]);
    }
  });

  test.each<[string, unknown, number, number, unknown]>([
    ["what is not JSON", "{", 400, -32_700, null],
    ["a batch", [LIST], 400, -32_600, null],
    ["a message without a method", { jsonrpc: "2.0", id: 1 }, 400, -32_600, null],
    ["an id that is null", { ...LIST, id: null }, 400, -32_600, null],
    ["no version", { id: 1, method: "ping" }, 400, -32_600, 1],
    ["an unknown method", { ...LIST, method: "nothing/list" }, 200, -32_601, 1],
    ["a notification with an id", { ...LIST, method: "notifications/initialized" }, 200, -32_601, 1],
  ])("%s has the code of JSON-RPC", async (_, body, status, code, id) => {
    const answer = await send({ body });
    expect([answer.status, answer.body.id, answer.body.error.code]).toEqual([status, id, code]);
  });

  test.each<[object, string]>([
    [{ method: "initialize" }, "params must be an object"],
    [{ method: "initialize", params: [] }, "params must be an object"],
    [{ method: "nothing/list", params: "x" }, "params must be an object"],
    [
      { method: "initialize", params: { protocolVersion: 5, capabilities: {}, clientInfo: { name: "x" } } },
      "params.protocolVersion must be a string; params.clientInfo.version must be a string",
    ],
    [{ params: { cursor: 5 } }, "params.cursor must be a string"],
    [{ params: { cursor: "x" } }, "params.cursor must be left out: the list has one page"],
    [{ method: "tools/call", params: { name: 5 } }, "params.name must be a string"],
    [{ method: "tools/call", params: { name: "x", arguments: [] } }, "params.arguments must be an object"],
    [{ method: "ping", params: { _meta: 5 } }, "params._meta must be an object"],
    [
      { method: "initialize", params: initializing({ icons: Array(6).fill({ src: 5 }) }) },
      "params.clientInfo.icons.0.src must be a string; params.clientInfo.icons.1.src must be a string; " +
        "params.clientInfo.icons.2.src must be a string; params.clientInfo.icons.3.src must be a string; " +
        "params.clientInfo.icons.4.src must be a string; and 1 more",
    ],
    [
      { method: "initialize", params: initializing({}, { experimental: { ["x".repeat(300)]: 5 } }) },
      `params.capabilities.experimental.${"x".repeat(167)}... must be an object`,
    ],
  ])("that is a request, with invalid parameters: %j", async (request, problem) => {
    const { status, body } = await send({ body: { ...LIST, ...request } });
    const error = { code: -32_602, message: `Invalid params: ${problem}` };
    expect([status, body]).toEqual([200, { jsonrpc: "2.0", id: 1, error }]);
  });

  test("that is a request of the present revision, with invalid parameters, has a status of its own", async () => {
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
    const { status, body } = await send({ headers, body: { ...LIST, params: [] } });
    expect([status, body.error.code]).toEqual([400, -32_602]);
  });

  test("that is a notification is accepted, whatever its method", async () => {
    for (const method of ["notifications/initialized", "notifications/nothing", "tools/list"])
      expect((await send({ body: { jsonrpc: "2.0", method } })).status).toBe(202);
  });

  test("is JSON, not compressed", async () => {
    for (const headers of [{ "content-type": "text/plain" }, { "content-encoding": "gzip" }]) {
      expect(await refused({ headers })).toEqual([415, "TRANSPORT_UNSUPPORTED"]);
    }
  });

  test("opens no stream of what changes: nothing does", async () => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "a test", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const method = "subscriptions/listen";
    const { body } = await send({
      headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method },
      body: { jsonrpc: "2.0", id: 1, method, params: { _meta, notifications: {} } },
    });
    expect(body.error.code).toBeLessThan(0);
  });
});

test("tools that no operation has the name of are refused, and more than 32", async () => {
  for (const tools of ["NoSuch", "WorkService/LeaseWork", "runner.v1.WorkService/LeaseWork", "toString"]) {
    expect([tools, ...(await refused({ path: `/mcp?tools=${tools}` }))]).toEqual([
      tools,
      400,
      "VALUE_UNUSABLE",
    ]);
  }
  const named = (count: number) => `/mcp?tools=${Array.from({ length: count }, () => "GetProject").join()}`;
  expect((await send({ path: named(32) })).status).toBe(200);
  expect(await refused({ path: named(33) })).toEqual([400, "VALUE_UNUSABLE"]);
});

test("each request counts against the limits of its token", async () => {
  // One at once, and the next after a minute.
  const limited = await startHostedServer({ args: ["--calls-per-token", "1"] });
  const ask = () =>
    fetch(`${limited.url}/mcp`, {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        authorization: `Bearer ${limited.token}`,
      },
      body: JSON.stringify(LIST),
    });
  expect((await ask()).status).toBe(200);
  const second = await ask();
  expect([second.status, (await second.json()).error.data.reason]).toEqual([
    429,
    "ERROR_REASON_TOO_MANY_CALLS",
  ]);
  expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(0);
});
