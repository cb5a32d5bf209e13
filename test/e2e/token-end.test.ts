import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { addDefaultAgent } from "../harness/added-agent.ts";
import { post, reasonOf } from "../harness/call.ts";
import { type ReachableServer, runHostedCommand, startHostedServer, stopAll } from "../harness/server.ts";
import { expiredToken } from "./bad-tokens.ts";

const DAY_S = 24 * 3600;

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** What answers say about the end of a token that was made for some days, and what its list says. */
async function endsOf(days: number) {
  const { body } = await post(server, "UserService/CreatePersonalAccessToken", {
    validFor: `${days * DAY_S}s`,
  });
  const call = (operation: string, request: object = {}) => post(server, operation, request, body.token);
  const { personalAccessTokens } = (await call("UserService/ListPersonalAccessTokens")).body;
  const { id, expiresAt } = personalAccessTokens.at(-1);
  const answers = [
    await call("IdentityService/GetAuthenticatedIdentity"),
    await call("ProjectService/GetProject", { projectId: id }),
    await call("EventService/WatchEvents", { organization: true, afterSequence: "1" }),
  ];
  return { id, expiresAt, ends: answers.map(({ header }) => header.get("token-expires-at")) };
}

test("every answer to a token in its last 7 days tells its end, failures and streams too", async () => {
  const { expiresAt, ends } = await endsOf(7);
  expect(ends.map((each) => Date.parse(each ?? ""))).toEqual(Array(3).fill(Date.parse(expiresAt)));
});

test("no answer to another token does", async () => {
  expect((await endsOf(8)).ends).toEqual([null, null, null]);
});

test("a token that has ended opens the server again once its owner has renewed it", async () => {
  const token = await expiredToken(server);
  const whoami = () => post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);
  expect(reasonOf(await whoami())).toBe("TOKEN_EXPIRED");
  const listed = await runHostedCommand(["run", "list", "--server", server.url], { CHARTROOM_TOKEN: token });
  expect(listed.stderr).toMatch(
    /^chartroom: the token ended at 20[-\d]+T[:.\d]+Z: put another one into CHARTROOM_TOKEN, .*\n$/,
  );
  const { personalAccessTokens } = (await post(server, "UserService/ListPersonalAccessTokens")).body;
  const personalAccessTokenId = personalAccessTokens.at(-1).id;
  // It cannot renew itself any more.
  const renew = (as: string) =>
    post(server, "UserService/RenewPersonalAccessToken", { personalAccessTokenId }, as);
  expect(reasonOf(await renew(token))).toBe("TOKEN_EXPIRED");
  expect((await renew(server.token)).status).toBe(200);
  expect((await whoami()).status).toBe(200);
});

describe("the command line", () => {
  const DAY_MS = DAY_S * 1_000;
  /** Makes a token for some days; with its id and its end. */
  const make = async (days: number) => {
    const made = await post(server, "UserService/CreatePersonalAccessToken", {
      validFor: `${days * DAY_S}s`,
    });
    const { personalAccessTokens } = (await post(server, "UserService/ListPersonalAccessTokens")).body;
    const { id, expiresAt } = personalAccessTokens.at(-1);
    return { token: made.body.token as string, id, endsAt: Date.parse(expiresAt) };
  };
  const chartroom = (token: string, ...args: readonly string[]) =>
    runHostedCommand([...args, "--server", server.url], { CHARTROOM_TOKEN: token });
  const json = ({ stdout }: { readonly stdout: string }) => JSON.parse(stdout);

  test("warns once in the last 7 days of its token, which it then renews", async () => {
    await addDefaultAgent(server, "quiet", "text", ["cat"]);
    const { token, id, endsAt } = await make(7);
    const renewal = `chartroom token renew --server ${server.url}`;
    const warning = `chartroom: the token ends at ${new Date(endsAt).toISOString()}: ${renewal}\n`;
    // It finds the agent first: two calls.
    const list = () => chartroom(token, "run", "list", "--agent", "quiet", "--json");
    const listed = await list();
    expect([listed.code, json(listed), listed.stderr]).toEqual([0, [], warning]);
    const refused = await chartroom(token, "run", "send", id, "x");
    expect([refused.code, refused.stderr.slice(0, warning.length)]).toEqual([1, warning]);
    const watched = await chartroom(token, "run", "watch", id);
    expect([watched.code, watched.stderr.slice(0, warning.length)]).toEqual([1, warning]);

    const before = Date.now();
    const renewed = await chartroom(token, "token", "renew");
    expect([renewed.code, renewed.stderr]).toEqual([0, ""]);
    expect(renewed.stdout).toMatch(
      new RegExp(`^renewed the token ${id}: it ends at 20[-\\d]+ [:\\d]+ UTC\n$`),
    );
    expect((await list()).stderr).toBe("");
    const again = json(await chartroom(token, "token", "renew", id, "--json", "--days", "31"));
    expect(again.id).toBe(id);
    expect(Date.parse(again.expiresAt)).toBeGreaterThanOrEqual(before + 31 * DAY_MS);
    const shorter = await chartroom(token, "token", "renew", id, "--days", "1");
    expect([shorter.code, shorter.stderr]).toEqual([
      1,
      expect.stringMatching(/^chartroom: the token is valid until 20.* and cannot be renewed for less\n$/),
    ]);
  });

  test("renews a token that has more than 30 days left for 90, and asks which one where it cannot know", async () => {
    const { token, id, endsAt } = await make(60);
    const { code, stderr } = await chartroom(token, "token", "renew");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^chartroom: say which one of your tokens: chartroom token renew ID\n/);
    expect(stderr).toContain(`\n${id}  ${new Date(endsAt).toISOString().slice(0, 10)}`);
    const renewed = json(await chartroom(token, "token", "renew", id, "--json"));
    expect(Date.parse(renewed.expiresAt)).toBeGreaterThanOrEqual(endsAt + 30 * DAY_MS);
    const unknown = await chartroom(token, "token", "renew", token);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/you have no access token/)]);
    expect(unknown.stderr).not.toContain(token);
  });

  test("tells a service account that its token is replaced", async () => {
    const account = { name: "nightly", validUntil: "2999-12-31T00:00:00Z" };
    const made = await post(server, "ServiceAccountService/CreateServiceAccount", account);
    const serviceAccountId = made.body.serviceAccount.id;
    const request = { serviceAccountId, validFor: `${7 * DAY_S}s` };
    const { token } = (await post(server, "ServiceAccountService/CreateServiceAccountToken", request)).body;
    expect((await chartroom(token, "run", "list")).stderr).toMatch(
      /^chartroom: the token ends at 20\S+: ServiceAccountService\/CreateServiceAccountToken makes another one\n$/,
    );
    const { code, stderr } = await chartroom(token, "token", "renew");
    expect([code, stderr]).toEqual([1, expect.stringMatching(/is not renewed: ServiceAccountService/)]);
  });
});
