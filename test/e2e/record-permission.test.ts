import { Code } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { post, reasonOf } from "../harness/call.ts";
import { addMember } from "../harness/member.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { watch } from "../harness/watch.ts";

let server: TestServer;
let organizationId: string;
beforeAll(async () => {
  server = await startServer();
  ({ organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body);
});
afterAll(stopAll);

const transport = () => createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" });

describe("the record of an organization", () => {
  test("is not for members who are no administrators", async () => {
    const { token } = await addMember(server, { organizationId, email: "member@localhost" });
    const list = await post(server, "EventService/ListAuditLogs", {}, token);
    expect([list.status, reasonOf(list)]).toEqual([403, "PERMISSION_DENIED"]);
    const error = await watch(transport(), token).ended;
    expect([error.code, error.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
      Code.PermissionDenied,
      ErrorReason.PERMISSION_DENIED,
    ]);
  });

  test("is streamed to an administrator until it is one no longer", async () => {
    const email = "administrator@localhost";
    const { token, userId } = await addMember(server, { organizationId, email, administrator: true });
    const stream = watch(transport(), token);
    await stream.begun;
    const role = "ORGANIZATION_ROLE_MEMBER";
    const set = await post(server, "OrganizationService/SetRole", { organizationId, userId, role });
    expect(set.status).toBe(200);
    expect((await stream.ended).code).toBe(Code.PermissionDenied);
  });
});
