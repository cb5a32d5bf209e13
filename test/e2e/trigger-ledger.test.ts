import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { diffOf } from "../../src/store/record/packed-diff.ts";
import { post, reasonOf } from "../harness/call.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { addWorkflow, deliver, ledgerOf, MANUAL } from "../harness/webhook.ts";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../harness/webhook-payload.ts";
import { hubSignature } from "../harness/webhook-signing.ts";

let server: ReachableServer;
let organizationId: string;
let member: TestMember;
beforeAll(async () => {
  server = await startHostedServer();
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity");
  organizationId = body.organizationId;
  member = await addMember(server, { organizationId, email: "nell@example.org" });
});
afterAll(stopAll);

const RUN = Buffer.from('{"parameters":{}}');
const onPullRequest = (context: object = { fromTrigger: {} }) => ({ pullRequest: {}, context });
const update = (workflowId: string, fields: object) =>
  post(server, "WorkflowService/UpdateWorkflow", { workflowId, ...fields });
const start = (workflowId: string, fields: object = {}) =>
  post(server, "WorkflowService/StartWorkflow", { workflowId, ...fields });
const list = (request: object = {}, token?: string) =>
  post(server, "WorkflowService/ListWorkflowTriggerEvents", request, token ?? server.token);
const redeliver = (triggerEventId: string, token?: string) =>
  post(server, "WorkflowService/RedeliverWorkflowTriggerEvent", { triggerEventId }, token ?? server.token);

async function send(workflow: { id: string; secret: string }, payload: object | undefined, headers = {}) {
  const body = payload ? Buffer.from(JSON.stringify(payload)) : RUN;
  const event = payload ? GITHUB_PULL_REQUEST : {};
  // By the token, since a signature of the same body counts once.
  return deliver(server, workflow.id, body, { ...event, "x-gitlab-token": workflow.secret, ...headers });
}

describe("the ledger", () => {
  test("tells of manual starts, and of those that were refused to who may start", async () => {
    const { id } = await addWorkflow(server);
    const byHand = await start(id);
    await start(id, { contextOverride: { agent: { prompt: "Look around" } } });
    const refused = await start(id, { contextOverride: { fromTrigger: {} } });
    await update(id, { disabled: true });
    expect((await start(id)).status).toBe(400);
    const stranger = await post(server, "WorkflowService/StartWorkflow", { workflowId: id }, member.token);
    expect(stranger.status).toBe(403);
    const ledger = await ledgerOf(server, id);
    expect(ledger.slice(2)).toMatchObject([
      { verdict: "TRIGGER_VERDICT_REFUSED", reason: refused.body.message, workflowExecutionId: "" },
      { verdict: "TRIGGER_VERDICT_DISABLED", reason: "the workflow is disabled", workflowExecutionId: "" },
    ]);
    expect(ledger).toHaveLength(4);
    expect(ledger[0]).toMatchObject({
      source: "SOURCE_MANUAL",
      verdict: "TRIGGER_VERDICT_STARTED",
      triggerIndex: 0,
      workflowExecutionId: byHand.body.workflowExecution.id,
    });
    expect(ledger[1].triggerIndex).toBeUndefined();
  });

  test("is paged from the newest entry on, and filtered by workflow and verdict", async () => {
    const [first, second] = [await addWorkflow(server), await addWorkflow(server)];
    for (const workflow of [first, second, first, second, first]) {
      await send(workflow, undefined);
      await send(workflow, { zen: "Keep it simple" });
    }
    const filter = { workflowIds: [first.id], verdicts: ["TRIGGER_VERDICT_STARTED"] };
    const whole = (await list({ filter })).body.triggerEvents;
    expect(whole.map(({ workflowId, verdict }: Record<string, string>) => [workflowId, verdict])).toEqual(
      Array(3).fill([first.id, "TRIGGER_VERDICT_STARTED"]),
    );
    expect(whole.map(({ id }: { id: string }) => id)).toEqual(
      whole
        .map(({ id }: { id: string }) => id)
        .sort()
        .reverse(),
    );
    const paged: unknown[] = [];
    let token = "";
    do {
      const { body } = await list({ filter, pagination: { pageSize: 2, token } });
      expect(body.triggerEvents.length).toBeLessThanOrEqual(2);
      paged.push(...body.triggerEvents);
      token = body.pagination.nextToken;
    } while (token !== "");
    expect(paged).toEqual(whole);
    const both = { workflowIds: [first.id, second.id] };
    expect((await list({ filter: both })).body.triggerEvents).toHaveLength(10);
    const none = { verdicts: ["TRIGGER_VERDICT_UNSPECIFIED"] };
    expect((await list({ filter: none })).body.triggerEvents).toEqual([]);
  });

  test("has page tokens of its own query alone", async () => {
    const workflow = await addWorkflow(server);
    for (const _ of [1, 2]) await send(workflow, undefined);
    const filter = { workflowIds: [workflow.id] };
    const { body } = await list({ filter, pagination: { pageSize: 1 } });
    const { nextToken: token } = body.pagination;
    const other = await list({ filter: { workflowIds: [v7()] }, pagination: { pageSize: 1, token } });
    expect([other.status, reasonOf(other)]).toEqual([400, "PAGE_TOKEN_INVALID"]);
  });

  test("is the organization's, for each of its members", async () => {
    const workflow = await addWorkflow(server);
    await send(workflow, undefined);
    const filter = { workflowIds: [workflow.id] };
    const { token } = await addOrganization(server, `other-${v7()}`);
    expect((await list({ filter }, token)).body.triggerEvents).toEqual([]);
    expect((await list({}, token)).body.triggerEvents).toEqual([]);
    expect((await list({ filter }, member.token)).body.triggerEvents).toHaveLength(1);
  });

  test("goes with its workflow", async () => {
    const { id } = await addWorkflow(server, { triggers: [] });
    await send({ id, secret: await secretOf(id) }, undefined);
    const [entry] = await ledgerOf(server, id);
    await post(server, "WorkflowService/DeleteWorkflow", { workflowId: id, force: true });
    while ((await post(server, "WorkflowService/GetWorkflow", { workflowId: id })).status === 200);
    expect(await ledgerOf(server, id)).toEqual([]);
    expect((await redeliver(entry.id)).status).toBe(404);
  });
});

test("nothing that proves a delivery is stored with it", async () => {
  const workflow = await addWorkflow(server, { triggers: [MANUAL, onPullRequest()] });
  const body = Buffer.from(JSON.stringify({ ...openedPullRequest(), token: "a-word-of-the-body" }));
  const signature = hubSignature(workflow.secret, body);
  await deliver(server, workflow.id, body, { ...GITHUB_PULL_REQUEST, ...signature });
  await deliver(server, workflow.id, RUN, { authorization: `Bearer ${server.token}` });
  const stored = await withServerData(server, async (store) => [
    await builderOf(store.reader).selectFrom("workflow_trigger_event").selectAll().execute(),
    await builderOf(store.reader).selectFrom("webhook_delivery").selectAll().execute(),
    await builderOf(store.reader).selectFrom("workflow_execution").selectAll().execute(),
    (await builderOf(store.reader).selectFrom("audit_log").selectAll().execute()).map(diffOf),
  ]);
  const text = JSON.stringify(stored);
  for (const secret of [
    workflow.secret,
    signature["x-hub-signature-256"].slice("sha256=".length),
    server.token,
    "a-word-of-the-body",
  ]) {
    expect(text).not.toContain(secret);
  }
});

async function secretOf(workflowId: string): Promise<string> {
  return (await post(server, "WorkflowService/GetWorkflowWebhookSecret", { workflowId })).body.secret;
}
