import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { packageOf } from "../harness/call-stream.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { badAuthorizations, expiredToken } from "./bad-tokens.ts";
import { everyOperation } from "./every-operation.ts";
import { nowhere } from "./world.ts";

const GIBIBYTE = 2 ** 30;
/** The answer to every call without a good token. */
const REFUSAL = {
  code: "unauthenticated",
  message: "a valid access token is required: send it as `Authorization: Bearer cr_pat_...`",
  details: [
    {
      type: "service.v1.ErrorDetail",
      debug: { reason: "ERROR_REASON_UNAUTHENTICATED", metadata: {} },
      value: "CAE",
    },
  ],
};

let server: ReachableServer;
let authorizations: Awaited<ReturnType<typeof badAuthorizations>>;
/** With a token whose only fault is its end. */
let expired: string;
beforeAll(async () => {
  server = await startHostedServer();
  authorizations = await badAuthorizations(server);
  expired = `Bearer ${await expiredToken(server)}`;
});
afterAll(stopAll);

async function refused(path: string, authorization: string | undefined, method = "POST", body = "{}") {
  const res = await fetch(server.url + path, {
    method,
    headers: { "content-type": "application/json", ...(authorization && { authorization }) },
    ...(method === "POST" && { body }),
  });
  return {
    status: res.status,
    challenge: res.headers.get("www-authenticate"),
    contentType: res.headers.get("content-type"),
    text: await res.text(),
  };
}

const expected = {
  status: 401,
  challenge: 'Bearer realm="chartroom"',
  contentType: "application/json",
  text: JSON.stringify(REFUSAL),
};

describe.each(everyOperation())("%s without a good token", (name, operation) => {
  const path = `/api/${packageOf(name)}.${name}`;

  test("answers the same to every cause", async () => {
    const body = JSON.stringify(operation.request(nowhere()));
    for (const [cause, authorization] of Object.entries(authorizations)) {
      expect({ cause, ...(await refused(path, authorization, "POST", body)) }).toEqual({
        cause,
        ...expected,
      });
    }
  });

  test("tells the owner of a token that has ended when that was, and nothing else", async () => {
    const { text, ...answer } = await refused(path, expired, "POST", "{ this is no JSON");
    expect(answer).toEqual({ ...expected, text: undefined, status: 401 });
    const { details, ...rest } = JSON.parse(text);
    const [{ debug, type }] = details;
    expect([details.length, type, debug.reason]).toEqual([
      1,
      REFUSAL.details[0]?.type,
      "ERROR_REASON_TOKEN_EXPIRED",
    ]);
    expect(Date.parse(debug.metadata.expired_at)).toBeLessThan(Date.now());
    expect(Object.keys(debug.metadata)).toEqual(["expired_at"]);
    expect(rest).toEqual({
      code: "unauthenticated",
      message: `the access token ended at ${debug.metadata.expired_at}: renew it, or send another one`,
    });
  });

  test("answers before anything of the body has come, and asks for none of it", async () => {
    const req = headersOnly(path, { "content-length": GIBIBYTE });
    const [res] = (await once(req, "response")) as [IncomingMessage];
    expect(res.statusCode).toBe(401);
    expect(await text(res)).toBe(expected.text);
    req.destroy();
    const polite = headersOnly(path, { "content-length": GIBIBYTE, expect: "100-continue" });
    let continued = false;
    polite.on("continue", () => {
      continued = true;
    });
    const [answer] = (await once(polite, "response")) as [IncomingMessage];
    expect([answer.statusCode, continued]).toEqual([401, false]);
    polite.destroy();
  });
});

test.each(["GET", "PUT", "DELETE"])("another method than POST learns nothing either: %s", async (method) => {
  expect(await refused("/api/service.v1.ProjectService/GetProject", undefined, method)).toEqual(expected);
});

test.each([
  "/",
  "/api/service.v1.ProjectService/Nothing",
  "/admin",
  "/grpc.reflection.v1.ServerReflection/x",
])("a path that is no operation looks like one: %s", async (path) => {
  expect(await refused(path, undefined)).toEqual(expected);
});

describe.each([
  ["gRPC", () => createGrpcTransport({ baseUrl: server.url })],
  ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: server.url, httpVersion: "1.1" })],
])("over %s", (_, transport) => {
  test("every cause is answered in the form of the protocol", async () => {
    const projects = createClient(ProjectService, transport());
    const workflows = createClient(WorkflowService, transport());
    for (const [cause, authorization] of Object.entries(authorizations)) {
      const headers = new Headers(authorization === undefined ? {} : { authorization });
      for (const call of [
        () => projects.getProject({ projectId: nowhere().project }, { headers }),
        () => projects.createProject({}, { headers }),
        () => workflows.startWorkflow({}, { headers }),
      ]) {
        const error = ConnectError.from(
          await call().then(
            () => undefined,
            (thrown) => thrown,
          ),
        );
        expect([cause, error.code, error.rawMessage]).toEqual([cause, Code.Unauthenticated, REFUSAL.message]);
        expect(error.findDetails(ErrorDetailSchema).map(({ reason }) => reason)).toEqual([
          ErrorReason.UNAUTHENTICATED,
        ]);
        expect(error.metadata.get("www-authenticate")).toBe(expected.challenge);
      }
    }
  });
});

function headersOnly(path: string, headers: Record<string, string | number>): ClientRequest {
  const req = request(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
  });
  req.on("error", () => {});
  req.flushHeaders();
  return req;
}

async function text(res: IncomingMessage): Promise<string> {
  let all = "";
  for await (const chunk of res.setEncoding("utf8")) all += chunk;
  return all;
}
