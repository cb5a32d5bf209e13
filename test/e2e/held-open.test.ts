import { once } from "node:events";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post } from "../harness/call.ts";
import { addMember } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer();
  organizationId = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body.organizationId;
});
afterAll(stopAll);

const joined = (name: string, isAdministrator = false) =>
  addMember(server, { organizationId, email: `${name}@example.org`, administrator: isAdministrator });

/** What the gate itself sends with a 401. */
const CHALLENGE = 'Bearer realm="chartroom"';

/** Begins a call, which passes the gate, and keeps its last byte back; the function sends it and answers. */
async function hold(
  operation: string,
  body: object,
  token: string,
): Promise<() => Promise<[number, string, string | undefined]>> {
  const bytes = Buffer.from(JSON.stringify(body));
  const req = request(`${server.url}/api/service.v1.${operation}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": bytes.length,
      expect: "100-continue",
    },
  });
  req.flushHeaders();
  // The server asks for the body once the gate has let the call in.
  await once(req, "continue");
  req.write(bytes.subarray(0, -1));
  return async () => {
    const answered = once(req, "response");
    req.end(bytes.subarray(-1));
    const [res] = await answered;
    const chunks: Buffer[] = [];
    for await (const chunk of res) chunks.push(chunk);
    const { code } = JSON.parse(Buffer.concat(chunks).toString());
    return [res.statusCode, code, res.headers["www-authenticate"]];
  };
}

const done = (answer: Answer) => expect(answer.status).toBe(200);

describe("a call that was let in and waits with its last byte", () => {
  test("does not make its caller an administrator again after the demotion", async () => {
    const { userId, token } = await joined("mallory", true);
    const role = { organizationId, userId, role: "ORGANIZATION_ROLE_ADMIN" };
    const finish = await hold("OrganizationService/SetRole", role, token);
    done(await post(server, "OrganizationService/SetRole", { ...role, role: "ORGANIZATION_ROLE_MEMBER" }));
    expect(await finish()).toEqual([403, "permission_denied", undefined]);
  });

  test("makes no new token after its own was deleted", async () => {
    const { token } = await joined("thief");
    const finish = await hold("UserService/CreatePersonalAccessToken", { description: "kept" }, token);
    const { body } = await post(server, "UserService/ListPersonalAccessTokens", {}, token);
    const personalAccessTokenId = body.personalAccessTokens[0].id;
    done(await post(server, "UserService/DeletePersonalAccessToken", { personalAccessTokenId }, token));
    expect(await finish()).toEqual([401, "unauthenticated", CHALLENGE]);
  });

  test("makes no new token after its caller was removed", async () => {
    const { userId, token } = await joined("leaver");
    const finish = await hold("UserService/CreatePersonalAccessToken", { description: "kept" }, token);
    done(await post(server, "OrganizationService/RemoveMember", { organizationId, userId }));
    expect(await finish()).toEqual([401, "unauthenticated", CHALLENGE]);
  });
});
