import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";

const ID = "0190c0de-0000-7000-8000-000000000000";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** A request to any path, with any method and without a content type unless one is given. */
async function send(path: string, method = "POST", headers: Record<string, string> = {}): Promise<Answer> {
  const res = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${server.token}`, ...headers },
    ...(method !== "GET" && { body: new TextEncoder().encode("{}") }),
  });
  return { status: res.status, header: res.headers, body: JSON.parse(await res.text()) };
}

const call = (operation: string, body: unknown) => post(server, operation, body);

describe("what is no operation", () => {
  test.each([
    "/",
    "/api",
    "/api/service.v1.ProjectService/Nothing",
    "/api/service.v1.ProjectService/getProject",
    "/api/service.v1.ProjectService/GetProject/",
    "/api/api/service.v1.ProjectService/GetProject",
    "/service.v1.Nothing/GetProject",
  ])("is not found: %s", async (path) => {
    const json = { "content-type": "application/json" };
    expectError(await send(path, "POST", json), 404, "not_found", "OPERATION_UNKNOWN");
    // By GET, it is the console's page.
    if (path !== "/") expectError(await send(path, "GET"), 404, "not_found", "OPERATION_UNKNOWN");
  });

  test("is suggested when a path comes near", async () => {
    const json = { "content-type": "application/json" };
    const answer = await send("/api/service.v1.ProjectService/ListProject", "POST", json);
    expect(answer.body.message).toMatch(/did you mean \/api\/service\.v1\.ProjectService\/ListProjects\?$/);
    expect(answer.body.details[0].debug.metadata).toEqual({
      suggestion: "service.v1.ProjectService/ListProjects",
    });
    const far = await send("/favicon.ico", "POST", json);
    expect(far.body.message).toMatch(/operations are at/);
  });

  test("that streams says so, and how it is called", async () => {
    const path = "/api/service.v1.EventService/WatchEvents";
    const unary = await send(path, "POST", { "content-type": "application/json" });
    expectError(unary, 415, "unimplemented", "TRANSPORT_UNSUPPORTED");
    expect(unary.header.get("accept-post")).toBe("application/connect+json");
    expect(unary.body.message).toMatch(
      /^WatchEvents streams: send application\/connect\+json, .*docs\/clients\.md/,
    );
    const res = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/connect+json", authorization: `Bearer ${server.token}` },
      body: JSON.stringify({ resourceTypes: [], filler: "x".repeat(30) }),
    });
    const { error } = JSON.parse(
      Buffer.from(await res.arrayBuffer())
        .subarray(5)
        .toString(),
    );
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toMatch(/^the body begins without an envelope: application\/connect\+json puts/);
    expect(error.details[0].debug.reason).toBe("ERROR_REASON_BODY_MALFORMED");
  });

  test.each(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])("is not called with %s", async (method) => {
    const answer = await send("/api/service.v1.ProjectService/GetProject", method);
    expectError(answer, 405, "unimplemented", "TRANSPORT_UNSUPPORTED");
    expect(answer.header.get("allow")).toBe("POST");
  });

  test("is not asked for by HEAD either, whose answer has no body", async () => {
    const headers = { authorization: `Bearer ${server.token}` };
    const path = "/api/service.v1.ProjectService/GetProject";
    const res = await fetch(server.url + path, { method: "HEAD", headers });
    expect([res.status, res.headers.get("allow"), await res.text()]).toEqual([405, "POST", ""]);
  });

  test.each([
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "application/json; charset=latin1",
    "application/connect+json",
    "application/jsonx",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
  ])("is not sent as %s", async (type) => {
    const answer = await send("/api/service.v1.ProjectService/ListProjects", "POST", {
      "content-type": type,
    });
    expectError(answer, 415, "unimplemented", "TRANSPORT_UNSUPPORTED");
    expect(answer.header.get("accept-post")).toBe("application/json");
  });

  test("is not sent without a content type", async () => {
    const answer = await send("/api/service.v1.ProjectService/ListProjects");
    expectError(answer, 415, "unimplemented", "TRANSPORT_UNSUPPORTED");
  });

  test.each(["application/json; charset=utf-8", "Application/JSON"])(
    "is an operation as %s",
    async (type) => {
      const answer = await send("/api/service.v1.ProjectService/ListProjects", "POST", {
        "content-type": type,
      });
      expect(answer.status).toBe(200);
    },
  );
});

describe("a body that is no JSON of the request", () => {
  test.each([" ", "{", "{}{}", "[]", "null", "7", '"x"', "{'projectId':1}", '{"projectId":}', "NaN"])(
    "is refused: %j",
    async (text) => {
      expectError(await call("ProjectService/GetProject", text), 400, "invalid_argument", "BODY_MALFORMED");
    },
  );

  test.each([
    ["a number for a text", { name: 7 }],
    ["a text for a message", { initializer: "https://git.example.org/a" }],
    ["a list for a message", { initializer: [] }],
    ["a message for a list", { initializer: { specs: {} } }],
    ["null in a list", { initializer: { specs: [null] } }],
    ["a number in a map of texts", { annotations: { a: 1 } }],
    ["a text for a boolean", { prebuildConfiguration: { enabled: "true" } }],
    ["a number for a duration", { prebuildConfiguration: { timeout: 3600 } }],
    ["a duration without its unit", { prebuildConfiguration: { timeout: "3600" } }],
    ["both members of a oneof", { initializer: { specs: [{ git: {}, contextUrl: {} }] } }],
    ["an unknown field", { nmae: "x" }],
    ["an unknown field inside", { initializer: { specs: [{ git: { remoteURI: "x" } }] } }],
    ["an unknown name of an enum", { prebuildConfiguration: { executor: { principal: "PRINCIPAL_DOG" } } }],
    ["a field of Object's prototype", { constructor: {} }],
    ["a surrogate without its partner", '{"name":"\\ud800"}'],
  ])("is refused for %s", async (_, body) => {
    expectError(await call("ProjectService/CreateProject", body), 400, "invalid_argument", "BODY_MALFORMED");
  });

  test.each([["1.5"], ['"x"'], ["5000000000"], ["1e99"], ["true"]])(
    "is refused for a page size of %s",
    async (size) => {
      const answer = await call("ProjectService/ListProjects", `{"pagination":{"pageSize":${size}}}`);
      expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
    },
  );

  test("is refused for a key that is in it twice, in one spelling or in both", async () => {
    for (const keys of [`"projectId":"x","projectId":"${ID}"`, `"project_id":"x","projectId":"${ID}"`]) {
      const answer = await call("ProjectService/GetProject", `{${keys}}`);
      expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
    }
  });

  test("is refused for bytes that are no UTF-8", async () => {
    const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const answer = await call("ProjectService/CreateProject", new Uint8Array(body));
    expectError(answer, 400, "invalid_argument", "BODY_MALFORMED");
  });

  test.each([5_000, 15_000])("is refused when it is nested %d deep", async (depth) => {
    const list = "[".repeat(depth) + "]".repeat(depth);
    const objects = `${'{"filter":'.repeat(depth)}{}${"}".repeat(depth)}`;
    for (const body of [list, objects, `{"filter":${list}}`, `{"filter":{"annotations":{"a":${objects}}}}`]) {
      const answer = await call("ProjectService/ListProjects", body);
      expectError(answer, 400, "invalid_argument", "BODY_TOO_COMPLEX");
    }
  });
});

describe("a request that is well formed", () => {
  test("may spell fields as the .proto files do, and numbers as text", async () => {
    const answer = await call("ProjectService/GetProject", { project_id: ID });
    expectError(answer, 404, "not_found", "NOT_FOUND");
    expect((await call("ProjectService/ListProjects", { pagination: { page_size: "5" } })).status).toBe(200);
  });

  test("may leave fields null, which is like leaving them out", async () => {
    const body = { filter: { runnerKinds: null, search: null }, pagination: null };
    expect((await call("ProjectService/ListProjects", body)).status).toBe(200);
  });

  test("may not carry an enum's number that the contract does not know", async () => {
    const answer = await call("ProjectService/ListProjects", { filter: { runnerKinds: [99] } });
    expectError(answer, 400, "invalid_argument", "CONSTRAINT_VIOLATED");
  });

  test("names at most 20 of its violations, and how many there were", async () => {
    const projectIds = Array.from({ length: 25 }, () => "no id");
    const answer = await call("ProjectService/ListProjects", { filter: { projectIds } });
    expectError(answer, 400, "invalid_argument", "CONSTRAINT_VIOLATED");
    const [detail, violations] = answer.body.details;
    expect(detail.debug.metadata).toEqual({ violations: "25" });
    expect(violations.type).toBe("buf.validate.Violations");
    expect(violations.debug.violations).toHaveLength(20);
    expect(answer.body.message).toMatch(/; and 5 more$/);
    expect(reasonOf(answer)).toBe("CONSTRAINT_VIOLATED");
  });
});
