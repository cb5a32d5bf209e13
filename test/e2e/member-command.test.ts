import { userInfo } from "node:os";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
} from "../harness/server.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const EMAIL = "ann@example.org";
const line = (args: readonly string[]) => [
  "member",
  ...args,
  ...["--data-dir", server.dataDir, "--organization", "My organization"],
];
const member = (...args: string[]) => runHostedCommand(line(args));
/** Runs it as a program: each command once. */
const memberProgram = (...args: string[]) => runCommand(line(args));

test("members are added, listed, given a role and removed while the server runs", async () => {
  const added = await memberProgram("add", "--email", EMAIL, "--name", "Ann Example");
  const token = added.stdout.trim();
  const role = async () => {
    const { body } = await post(server, "AccountService/GetAccount", {}, token);
    return body.account?.memberships[0].userRole;
  };
  expect(await role()).toBe("ORGANIZATION_ROLE_MEMBER");
  await addOrganization(server, "Another organization");
  const listed = await memberProgram("list");
  expect(listed.stdout.split("\n").map((line) => line.split(/ {2,}/).slice(1))).toEqual([
    ["administrator", "admin@localhost", "Administrator"],
    ["member", EMAIL, "Ann Example"],
    [],
  ]);

  const raised = await memberProgram("role", "--email", EMAIL, "--role", "administrator");
  expect([raised.code, raised.stdout]).toEqual([0, `${EMAIL} is an administrator now\n`]);
  expect(await role()).toBe("ORGANIZATION_ROLE_ADMIN");

  const removed = await memberProgram("remove", "--email", EMAIL);
  expect([removed.code, removed.stdout]).toEqual([0, `${EMAIL} is no member any more\n`]);
  expect((await post(server, "AccountService/GetAccount", {}, token)).status).toBe(401);
  expect((await member("list")).stdout).not.toContain(EMAIL);
});

test("the list says who is suspended", async () => {
  const { organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body;
  const email = "suspended@example.org";
  const { userId } = await addMember(server, { organizationId, email });
  for (const [suspended, state] of [
    [true, "member, suspended  "],
    [false, "member         "],
  ] as const) {
    expect((await post(server, "UserService/SetSuspended", { userId, suspended })).status).toBe(200);
    expect((await member("list")).stdout).toContain(`${userId}  ${state}${email}  `);
  }
});

test("what cannot be done is said in a sentence", async () => {
  const [stranger, last, nobody] = await Promise.all([
    member("role", "--email", "nobody@example.org", "--role", "member"),
    member("remove", "--email", "admin@localhost"),
    member("remove", "--email", "nobody@example.org"),
  ]);
  expect(stranger.stderr).toBe("chartroom: nobody@example.org is no member of My organization\n");
  expect(nobody.stderr).toBe("chartroom: nobody@example.org is no member of My organization\n");
  expect(last.stderr).toMatch(/^chartroom: .*administrator/);
  expect([stranger.code, last.code, nobody.code]).toEqual([1, 1, 1]);
});

test("the audit trail names the operating system's user who ran a command", async () => {
  const { body } = await post(server, "EventService/ListAuditLogs", { pagination: { pageSize: 100 } });
  const added = body.entries.find(({ action }: { action: string }) => action === "chartroom member add");
  expect(added).toMatchObject({
    actorId: `operator:${userInfo().username}`,
    actorPrincipal: "PRINCIPAL_UNSPECIFIED",
  });
});
