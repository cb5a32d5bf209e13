import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { everyOperation } from "../e2e/every-operation.ts";
import { bearer } from "../e2e/speak/connect.ts";
import { makeWorld, type World } from "../e2e/world.ts";
import { post } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { expectError } from "./expected-error.ts";

let server: ReachableServer;
let world: World;
let readOnly: string;
beforeAll(async () => {
  server = await startHostedServer();
  world = await makeWorld(server);
  const made = await post(server, "UserService/CreatePersonalAccessToken", { readOnly: true });
  readOnly = made.body.token;
});
afterAll(stopAll);

const isRead = (level: Idempotency) => level === Idempotency.NO_SIDE_EFFECTS;
/** Those of people and service accounts: no other token can be read-only. */
const operations = everyOperation().filter(([, { token }]) => token === undefined);

describe("a read-only token", () => {
  test.each(operations.filter(([, { method }]) => isRead(method.idempotency)))(
    "reads: %s",
    async (name, { built, request, refusal }) => {
      const { status } = await post(server, name, request(world), readOnly);
      expect(status).toBe(built ? (refusal?.[0] ?? 200) : 501);
    },
  );

  test.each(operations.filter(([, { method }]) => !isRead(method.idempotency)))(
    "changes nothing: %s",
    async (name, { request }) => {
      const answer = await post(server, name, request(world), readOnly);
      expectError(answer, 403, "permission_denied", "PERMISSION_DENIED");
      expect(answer.body.details[0].debug.metadata).toEqual({ permission: "write" });
    },
  );

  test("is refused before its body is read", async () => {
    const answer = await post(server, "ProjectService/CreateProject", "no JSON", readOnly);
    expectError(answer, 403, "permission_denied", "PERMISSION_DENIED");
  });

  test("is refused over gRPC as well", async () => {
    const transport = createGrpcTransport({ baseUrl: server.url, interceptors: [bearer(readOnly)] });
    const client = createClient(ProjectService, transport);
    expect((await client.getProject({ projectId: world.project })).project?.id).toBe(world.project);
    const error = await client.deleteProject({ projectId: world.project }).catch((thrown) => thrown);
    expect(ConnectError.from(error).code).toBe(Code.PermissionDenied);
  });
});
