import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { runCommand, runHostedCommand, startServer, stopAll, type TestServer } from "../harness/server.ts";

let server: TestServer;
let organizationId: string;
let ownAccountId: string;
beforeAll(async () => {
  server = await startServer();
  const { account } = (await post(server, "AccountService/GetAccount")).body;
  organizationId = account.organizationId;
  ownAccountId = account.id;
});
afterAll(stopAll);

const EMAIL = "person@example.org";
const whoAmI = (token: string) => post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);
const command = (...args: string[]) => runHostedCommand([...args, "--data-dir", server.dataDir]);
/** Runs it as a program: each command once. */
const program = (...args: string[]) => runCommand([...args, "--data-dir", server.dataDir]);
const outcome = (answer: Answer) => [answer.status, reasonOf(answer)];

describe("the operator", () => {
  test("blocks and unblocks any account while the server runs", async () => {
    const person = await addMember(server, { organizationId, email: EMAIL });
    await command("subscription", "add", "--account", EMAIL, "--name", "small");
    const blocked = await program("account", "block", EMAIL, "--reason", "lost laptop");
    expect(blocked).toEqual({
      code: 0,
      stdout: "environments stopped: 0\nsubscriptions cancelled: 1\nservice account tokens disabled: 0\n",
      stderr: "",
    });
    expect(outcome(await whoAmI(person.token))).toEqual([403, "ACCOUNT_BLOCKED"]);
    expect((await command("account", "block", person.accountId, "--reason", "again")).stdout).toBe(
      blocked.stdout,
    );
    const unblocked = await program("account", "unblock", person.accountId.toUpperCase());
    expect(unblocked.stdout).toBe(`${EMAIL} has access again\n`);
    expect((await whoAmI(person.token)).status).toBe(200);
  });

  test.each([
    ["the last administrator", (last: string) => ["block", last, "--reason", "left"], /last administrator/],
    ["nobody", () => ["block", "nobody@example.org", "--reason", "left"], /no account has the id or email/],
    [
      "an account without a reason",
      (last: string) => ["block", last, "--reason", ""],
      /--reason must not be empty/,
    ],
    [
      "an account with 1,025 characters",
      (last: string) => ["block", last, "--reason", "x".repeat(1025)],
      /1024/,
    ],
  ])("does not block %s, and reads why in a sentence", async (_, args, problem) => {
    const reef = await addOrganization(server, `reef${v7()}`);
    const { code, stdout, stderr } = await command("account", ...args(reef.accountId));
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(problem);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect((await whoAmI(reef.token)).status).toBe(200);
  });

  test("gives no subscription without a name", async () => {
    const { code, stderr } = await command("subscription", "add", "--account", ownAccountId, "--name", " ");
    expect([code, stderr]).toEqual([1, "chartroom: a subscription needs a name\n"]);
  });
});
