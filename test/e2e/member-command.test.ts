import { userInfo } from "node:os";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { dataEnvironmentOf } from "../harness/data-config.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { CHARTROOM, runProgram, terminalEnvironment, testWith } from "../harness/program.ts";
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

test("the organization need not be named where there is one, and is asked for where there are several", async () => {
  const own = await startHostedServer();
  const list = () => runCommand(["member", "list", "--data-dir", own.dataDir]);
  expect(await list()).toMatchObject({ code: 0, stdout: expect.stringContaining("admin@localhost") });
  const add = ["member", "add", "--email", EMAIL, "--name", "Ann Example", "--data-dir", own.dataDir];
  expect(await runHostedCommand(add)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^cr_pat_/) });
  await addOrganization(own, "Another organization");
  const { code, stdout, stderr } = await list();
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(
    /^chartroom: there is more than one organization: choose one with --organization\n( {2}[0-9a-f-]{36} {2}(My|Another) organization\n){2}$/,
  );
});

testWith("script")("at a terminal the lists on the data have headings", async () => {
  const headings = {
    "organization list": /^ORGANIZATION +BYTES +NAME\r?\n[0-9a-f-]{36} +\d+ +My organization\r?\n/,
    "member list":
      /^USER +ROLE +EMAIL +NAME\r?\n[0-9a-f-]{36} +administrator +admin@localhost +Administrator\r?\n/,
    "token list":
      /^TOKEN +OWNER +ORGANIZATION +EXPIRY +LAST USE +STATE\r?\n[0-9a-f-]{36} +admin@localhost +My organization +expires /,
    "agent list": /^AGENT +NAME +ORGANIZATION +FORM +COMMAND +DEFAULT\r?\n$/,
  };
  const own = await startHostedServer();
  for (const [command, text] of Object.entries(headings)) {
    const line = `${CHARTROOM} ${command} --data-dir '${own.dataDir}'`;
    const { code, stdout } = await runProgram(
      "script",
      ["--quiet", "--return", "--command", line, "/dev/null"],
      { env: { ...terminalEnvironment(), ...dataEnvironmentOf(own.dataDir), COLUMNS: "160" } },
    );
    expect([code, stdout]).toEqual([0, expect.stringMatching(text)]);
  }
  const piped = await runCommand(["organization", "list", "--data-dir", own.dataDir]);
  expect(piped.stdout).toMatch(/^[0-9a-f-]{36} {2}\d+ {2}My organization\n$/);
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

test("no person has an address or a name that reads differently from how it is written", async () => {
  const refused = async (email: string, name: string) =>
    (await member("add", "--email", email, "--name", name)).stderr;
  for (const name of ["Ann\u202eelpmaxE", "Ann\u{e0041}"])
    expect(await refused(EMAIL, name)).toBe(
      "chartroom: the person's name must have 1 to 254 characters without control characters, U+202D, U+202E and tag characters\n",
    );
  expect(await refused("ann\u202e@example.org", "Ann Example")).toBe(
    "chartroom: --email must be a mail address of at most 254 characters\n",
  );
});

test("the audit trail names the operating system's user who ran a command", async () => {
  const { body } = await post(server, "EventService/ListAuditLogs", { pagination: { pageSize: 100 } });
  const added = body.entries.find(({ action }: { action: string }) => action === "chartroom member add");
  expect(added).toMatchObject({
    actorId: `operator:${userInfo().username}`,
    actorPrincipal: "PRINCIPAL_UNSPECIFIED",
  });
});
