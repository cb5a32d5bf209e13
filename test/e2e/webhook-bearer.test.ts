import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post, reasonOf } from "../harness/call.ts";
import { insertRunnerToken, insertServiceAccountToken } from "../harness/machine-token.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { addWorkflow, deliver, executionsOf, ledgerOf, verdictsOf } from "../harness/webhook.ts";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../harness/webhook-payload.ts";
import { hubSignature } from "../harness/webhook-signing.ts";

let server: ReachableServer;
let organizationId: string;
let administrator: { id: string; principal: string };
let member: TestMember;
beforeAll(async () => {
  server = await startHostedServer();
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
  ({ organizationId, subject: administrator } = body);
  member = await addMember(server, { organizationId, email: "nell@example.org" });
});
afterAll(stopAll);

const RUN = Buffer.from('{"parameters":{}}');
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const asMember = () => ({ url: server.url, token: member.token });
const refusal = ({ status, body }: Awaited<ReturnType<typeof deliver>>) => [
  status,
  reasonOf({ status, body } as never),
  body.message,
];

describe("a token in place of a signature", () => {
  test("of an administrator starts any workflow, in the administrator's name and as the executor", async () => {
    const { id } = await addWorkflow(asMember());
    const answer = await deliver(server, id, RUN, bearer(server.token));
    expect(verdictsOf(answer)).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, id);
    expect(execution.metadata.creator).toEqual(administrator);
    expect(execution.metadata.executor.id).toBe(member.userId);
    expect(await ledgerOf(server, id)).toMatchObject([{ source: "SOURCE_WEBHOOK" }]);
    const { body } = await post(server, "EventService/ListAuditLogs", {
      filter: { subjectIds: [execution.id] },
    });
    expect(body.entries).toMatchObject([
      { actorId: administrator.id, actorPrincipal: administrator.principal, action: "webhook" },
    ]);
  });

  test("of a member starts what it made", async () => {
    const { id } = await addWorkflow(asMember());
    expect(verdictsOf(await deliver(server, id, RUN, bearer(member.token)))).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, id);
    expect(execution.metadata.creator.id).toBe(member.userId);
  });

  test("of a service account starts what it made", async () => {
    const token = (
      await withServerData(server, (store, keys) =>
        insertServiceAccountToken(store, keys, {
          organizationId,
          creatorAccountId: member.accountId,
          description: "hook",
        }),
      )
    ).value;
    const { id } = await addWorkflow({ url: server.url, token });
    expect((await deliver(server, id, RUN, bearer(token))).status).toBe(202);
  });

  test("carries parameters like a signature", async () => {
    const { id } = await addWorkflow(server);
    const body = Buffer.from('{"parameters":{"unused":"value"}}');
    expect((await deliver(server, id, body, bearer(server.token))).status).toBe(202);
    const [execution] = await executionsOf(server, id);
    expect(execution.status.warnings).toHaveLength(1);
    expect(verdictsOf(await deliver(server, id, "", bearer(server.token)))).toEqual([202, "STARTED"]);
  });

  test("knows a delivery again by whichever id it bears", async () => {
    for (const header of ["webhook-id", "x-github-delivery", "idempotency-key"]) {
      const { id } = await addWorkflow(server);
      const send = () => deliver(server, id, RUN, { ...bearer(server.token), [header]: "delivery-1" });
      expect(verdictsOf(await send())).toEqual([202, "STARTED"]);
      expect(verdictsOf(await send())).toEqual([200, "DUPLICATE"]);
    }
  });
});

describe("a workflow that runs as another person", () => {
  test("takes no pull requests from its creator's token, and keeps its secret from it", async () => {
    const { id } = await addWorkflow(asMember());
    const event = Buffer.from(JSON.stringify(openedPullRequest()));
    const headers = { ...GITHUB_PULL_REQUEST, ...bearer(member.token) };
    const asked = { workflowId: id };
    const secret = () => post(server, "WorkflowService/GetWorkflowWebhookSecret", asked, member.token);
    const rotated = () => post(server, "WorkflowService/RotateWorkflowWebhookSecret", asked, member.token);
    expect([(await deliver(server, id, event, headers)).status, (await secret()).status]).toEqual([200, 200]);
    const taken = await post(server, "WorkflowService/UpdateWorkflow", { ...asked, executor: administrator });
    expect(taken.status).toBe(200);
    const answers = [await deliver(server, id, event, headers), await secret(), await rotated()];
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403]);
    // What it says without naming a repository stays its own to say.
    expect((await deliver(server, id, RUN, bearer(member.token))).status).toBe(202);
    expect((await post(server, "WorkflowService/GetWorkflowWebhookSecret", asked)).status).toBe(200);
  });
});

describe("a token that may not", () => {
  test("of a member to whom the workflow does not belong", async () => {
    const { id } = await addWorkflow(server);
    const answer = await deliver(server, id, RUN, bearer(member.token));
    const direct = await post(server, "WorkflowService/StartWorkflow", { workflowId: id }, member.token);
    expect(refusal(answer)).toEqual([403, "PERMISSION_DENIED", expect.stringContaining("start_workflow")]);
    expect(answer.body).toEqual(direct.body);
    expect(await executionsOf(server, id)).toEqual([]);
  });

  test("of another organization, to which the workflow is unknown", async () => {
    const { id } = await addWorkflow(server);
    const { token } = await addOrganization(server, `other-${v7()}`);
    const answer = await deliver(server, id, RUN, bearer(token));
    const unknown = await deliver(server, v7(), RUN, bearer(token));
    expect([answer.status, answer.body]).toEqual([401, unknown.body]);
    expect(unknown.status).toBe(401);
    expect((await deliver(server, v7(), RUN, bearer(server.token))).body).toEqual(unknown.body);
    expect(await executionsOf(server, id)).toEqual([]);
    expect(await ledgerOf(server, id)).toEqual([]);
  });

  test("that only reads", async () => {
    const { body } = await post(server, "UserService/CreatePersonalAccessToken", {
      description: "reads",
      readOnly: true,
    });
    const { id } = await addWorkflow(server);
    for (const workflowId of [id, v7()]) {
      const answer = await deliver(server, workflowId, RUN, bearer(body.token));
      expect(refusal(answer)).toEqual([403, "PERMISSION_DENIED", expect.stringContaining("read-only")]);
    }
  });

  test("of a runner, registered or not, which starts no workflows", async () => {
    const { body } = await post(server, "RunnerService/CreateRunner", { name: "In the attic" });
    const { runnerId } = body.runner;
    const registered = await withServerData(server, (store, keys) =>
      insertRunnerToken(store, keys, { organizationId, runnerId }),
    );
    const { id } = await addWorkflow(server);
    for (const token of [registered.value, body.exchangeToken]) {
      const answer = await deliver(server, id, RUN, bearer(token));
      expect(refusal(answer)).toEqual([403, "PERMISSION_DENIED", expect.stringContaining("start_workflow")]);
    }
  });

  test("of an account that is blocked, until it is not; its executor is then unfit too", async () => {
    const blocked = await addMember(server, { organizationId, email: `${v7()}@example.org` });
    const { id, secret } = await addWorkflow({ url: server.url, token: blocked.token });
    const { accountId } = blocked;
    await post(server, "AccountService/BlockAccount", { accountId, reason: "left the team" });
    for (const workflowId of [id, v7()]) {
      const answer = await deliver(server, workflowId, RUN, bearer(blocked.token));
      expect(refusal(answer)).toEqual([403, "ACCOUNT_BLOCKED", expect.stringContaining("blocked")]);
    }
    const signed = await deliver(server, id, RUN, hubSignature(secret, RUN));
    expect([...verdictsOf(signed), signed.body.verdicts[0].reason]).toEqual([
      200,
      "REFUSED",
      expect.stringContaining("blocked"),
    ]);
    await post(server, "AccountService/UnblockAccount", { accountId });
    expect((await deliver(server, id, RUN, hubSignature(secret, RUN))).status).toBe(202);
  });

  test("that was deleted", async () => {
    const made = await post(server, "UserService/CreatePersonalAccessToken", { description: "for a while" });
    const { id } = await addWorkflow(server);
    expect((await deliver(server, id, RUN, bearer(made.body.token))).status).toBe(202);
    const { body } = await post(server, "UserService/ListPersonalAccessTokens");
    const { id: personalAccessTokenId } = body.personalAccessTokens.find(
      ({ description }: { description: string }) => description === "for a while",
    );
    await post(server, "UserService/DeletePersonalAccessToken", { personalAccessTokenId });
    expect((await deliver(server, id, RUN, bearer(made.body.token))).status).toBe(401);
  });
});
