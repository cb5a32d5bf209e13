import { afterAll, beforeAll, expect, test } from "@jest/globals";
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
async function toldOf(days: number) {
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
  return { id, expiresAt, told: answers.map(({ header }) => header.get("token-expires-at")) };
}

test("every answer to a token in its last 7 days tells its end, failures and streams too", async () => {
  const { expiresAt, told } = await toldOf(7);
  expect(told.map((each) => Date.parse(each ?? ""))).toEqual(Array(3).fill(Date.parse(expiresAt)));
});

test("no answer to another token does", async () => {
  expect((await toldOf(8)).told).toEqual([null, null, null]);
});

test("a token that has ended opens the server again once its owner has renewed it", async () => {
  const token = await expiredToken(server);
  const whoami = () => post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);
  expect(reasonOf(await whoami())).toBe("TOKEN_EXPIRED");
  const listed = await runHostedCommand(["run", "list", "--server", server.url], { CHARTROOM_TOKEN: token });
  expect(listed.stderr).toMatch(/^chartroom: the token ended at 20[-\d]+T[:.\d]+Z: chartroom login\n$/);
  const { personalAccessTokens } = (await post(server, "UserService/ListPersonalAccessTokens")).body;
  const personalAccessTokenId = personalAccessTokens.at(-1).id;
  // It cannot renew itself any more.
  const renew = (as: string) =>
    post(server, "UserService/RenewPersonalAccessToken", { personalAccessTokenId }, as);
  expect(reasonOf(await renew(token))).toBe("TOKEN_EXPIRED");
  expect((await renew(server.token)).status).toBe(200);
  expect((await whoami()).status).toBe(200);
});
