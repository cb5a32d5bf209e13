import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
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
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer();
  ({ organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body);
});
afterAll(stopAll);

const account = async (token = server.token): Promise<Answer["body"]> =>
  (await post(server, "AccountService/GetAccount", {}, token)).body.account;

describe("GetAccount", () => {
  test("answers the caller's account with its membership and the token's organization", async () => {
    const found = await account();
    expect(found).toMatchObject({
      name: "Administrator",
      email: "admin@localhost",
      avatarUrl: "",
      organizationId,
      memberships: [
        {
          userRole: "ORGANIZATION_ROLE_ADMIN",
          organizationId,
          organizationName: "My organization",
          organizationMemberCount: 1,
        },
      ],
    });
    const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
    expect(found.memberships[0].userId).toBe(body.subject.id);
    expect(found.id).not.toBe(body.subject.id);
  });

  test("names the organizations of an account in order of joining, with a role in each", async () => {
    const first = await addOrganization(server, "first");
    const email = "traveller@example.org";
    const here = await addMember(server, { organizationId, email });
    const there = await addMember(server, {
      organizationId: first.organizationId,
      email,
      administrator: true,
    });
    expect(here.accountId).toBe(there.accountId);
    const seenHere = await account(here.token);
    expect(seenHere.memberships).toEqual([
      {
        userId: here.userId,
        userRole: "ORGANIZATION_ROLE_MEMBER",
        organizationId,
        organizationName: "My organization",
        organizationMemberCount: 2,
      },
      {
        userId: there.userId,
        userRole: "ORGANIZATION_ROLE_ADMIN",
        organizationId: first.organizationId,
        organizationName: "first",
        organizationMemberCount: 2,
      },
    ]);
    const seenThere = await account(there.token);
    expect(seenThere).toEqual({ ...seenHere, organizationId: first.organizationId });
  });

  test("leaves out an organization that the account left", async () => {
    const { userId, token } = await addMember(server, { organizationId, email: "leaver@example.org" });
    const other = await addOrganization(server, "other");
    const stays = await addMember(server, {
      organizationId: other.organizationId,
      email: "leaver@example.org",
    });
    expect((await account(token)).memberships).toHaveLength(2);
    await post(server, "OrganizationService/RemoveMember", { organizationId, userId });
    const { memberships } = await account(stays.token);
    expect(memberships.map((each: Answer["body"]) => each.organizationId)).toEqual([other.organizationId]);
  });

  test("is refused to who is no person", async () => {
    const validUntil = "2999-01-01T00:00:00Z";
    const made = await post(server, "ServiceAccountService/CreateServiceAccount", {
      name: "robot",
      validUntil,
    });
    const { id } = made.body.serviceAccount;
    const minted = await post(server, "ServiceAccountService/CreateServiceAccountToken", {
      serviceAccountId: id,
    });
    const refused = await post(server, "AccountService/GetAccount", {}, minted.body.token);
    expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
      403,
      "permission_denied",
      "PERMISSION_DENIED",
    ]);
  });
});

describe("the command line", () => {
  const command = (...args: string[]) => runHostedCommand([...args, "--data-dir", server.dataDir]);
  const program = (...args: string[]) => runCommand([...args, "--data-dir", server.dataDir]);

  test("adds a member with an account, and prints a first token that works at once", async () => {
    const added = await command(
      ...["member", "add", "--organization", "My organization"],
      ...["--email", "new@example.org", "--name", "A new person"],
    );
    expect([added.code, added.stderr]).toEqual([0, ""]);
    const found = await account(added.stdout.trim());
    expect([found.name, found.memberships[0].userRole]).toEqual(["A new person", "ORGANIZATION_ROLE_MEMBER"]);
    const again = await command(
      ...["member", "add", "--organization", organizationId],
      ...["--email", "new@example.org", "--name", "x"],
    );
    expect([again.code, again.stderr]).toEqual([
      1,
      "chartroom: new@example.org is a member of My organization already\n",
    ]);
  });

  test("adds an administrator where it says so, and refuses what is no address", async () => {
    const added = await command(
      ...["member", "add", "--organization", organizationId, "--role", "administrator"],
      ...["--email", "boss@example.org", "--name", "A boss"],
    );
    expect((await account(added.stdout.trim())).memberships[0].userRole).toBe("ORGANIZATION_ROLE_ADMIN");
    const refused = await command(
      ...["member", "add", "--organization", organizationId, "--email", "nobody", "--name", "x"],
    );
    expect([refused.code, refused.stderr]).toEqual([
      1,
      "chartroom: --email must be a mail address of at most 254 characters\n",
    ]);
  });

  test("creates organizations that share the server, and lists them", async () => {
    const made = await program("organization", "create", "--name", "A third", "--email", "third@example.org");
    expect([made.code, made.stderr]).toEqual([0, ""]);
    const token = /cr_pat_\w+/.exec(made.stdout)?.[0] ?? "";
    const found = await account(token);
    expect(found.memberships.map((each: Answer["body"]) => each.organizationName)).toEqual(["A third"]);
    const listed = await program("organization", "list");
    expect(listed.stdout).toMatch(new RegExp(`^${found.organizationId} +[1-9]\\d*  A third$`, "m"));
    expect(listed.stdout).toMatch(new RegExp(`^${organizationId} +[1-9]\\d*  My organization$`, "m"));
    const refused = await command("organization", "create", "--name", "A", "--email", "a@example.org");
    expect([refused.code, refused.stderr]).toEqual([
      1,
      "chartroom: --name must have at least 3 characters: give a longer one\n",
    ]);
  });

  test("gives no organization to an account that is blocked", async () => {
    const { accountId } = await addMember(server, { organizationId, email: "blocked@example.org" });
    await post(server, "AccountService/BlockAccount", { accountId, reason: "left the team" });
    const made = await command(
      ...["organization", "create", "--name", "An escape", "--email", "blocked@example.org"],
    );
    expect([made.code, made.stderr]).toEqual([
      1,
      "chartroom: the account is blocked: ask an administrator of its organization\n",
    ]);
    expect((await command("organization", "list")).stdout).not.toContain("An escape");
  });

  test("lists tokens without their values and revokes one at once", async () => {
    const { token, userId } = await addMember(server, { organizationId, email: "revoked@example.org" });
    expect((await post(server, "AccountService/GetAccount", {}, token)).status).toBe(200);
    const listed = await command("token", "list", "--user", "revoked@example.org");
    expect(listed.stdout).not.toContain("cr_pat_");
    const lines = listed.stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^[0-9a-f-]{36} {2}revoked@example\.org {2}My organization {2}expires \S+Z {2}last used \S+Z$/,
    );
    const id = lines[0]?.slice(0, 36) ?? "";
    const byId = await command("token", "list", "--user", userId);
    expect(byId.stdout).toContain(id);
    expect(await command("token", "revoke", id)).toMatchObject({ code: 0, stdout: `revoked ${id}\n` });
    expect((await post(server, "AccountService/GetAccount", {}, token)).status).toBe(401);
    expect(await command("token", "revoke", id)).toMatchObject({
      code: 1,
      stderr: `chartroom: no token has the id ${id}\n`,
    });
  });
});
