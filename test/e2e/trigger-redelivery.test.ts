import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { post, reasonOf, repository } from "../harness/call.ts";
import { addMember, type TestMember, withServerData } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import {
  addWorkflow,
  deliver,
  executionsOf,
  IN_HALF_A_DAY,
  ledgerOf,
  MANUAL,
  ONE_COMMAND,
  OVER_REPOSITORY,
} from "../harness/webhook.ts";
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
const redeliver = (triggerEventId: string, token?: string) =>
  post(server, "WorkflowService/RedeliverWorkflowTriggerEvent", { triggerEventId }, token ?? server.token);

/** Delivers the newest entry of a workflow again; what it made. */
async function redeliverNewest(workflowId: string) {
  const newest = (await ledgerOf(server, workflowId)).at(-1);
  const answer = await redeliver(newest.id);
  expect(answer.status).toBe(200);
  const made = answer.body.triggerEvents;
  for (const { redeliveredEventId } of made) expect(redeliveredEventId).toBe(newest.id);
  expect((await ledgerOf(server, workflowId)).slice(-made.length)).toEqual(made);
  return made;
}

async function send(workflow: { id: string; secret: string }, payload: object | undefined, headers = {}) {
  const body = payload ? Buffer.from(JSON.stringify(payload)) : RUN;
  const event = payload ? GITHUB_PULL_REQUEST : {};
  const signature = hubSignature(workflow.secret, body);
  return deliver(server, workflow.id, body, { ...event, ...signature, ...headers });
}

describe("delivering an entry again", () => {
  test("of a manual start starts with its parameters and context", async () => {
    const steps = [{ task: { command: "echo {{ .Parameters.name }}" } }];
    const { id } = await addWorkflow(server, { triggers: [MANUAL], action: { ...ONE_COMMAND, steps } });
    const contextOverride = {
      repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/a/b.git"] } },
    };
    await start(id, { parameters: { name: "first" } });
    const [again] = await redeliverNewest(id);
    expect(again).toMatchObject({
      source: "SOURCE_MANUAL",
      verdict: "TRIGGER_VERDICT_STARTED",
      triggerIndex: 0,
    });
    await start(id, { parameters: { name: "second" }, contextOverride });
    const [overridden] = await redeliverNewest(id);
    expect(overridden.triggerIndex).toBeUndefined();
    const executions = await executionsOf(server, id);
    expect(executions.map(({ spec }) => spec.trigger.context)).toMatchObject([
      OVER_REPOSITORY,
      OVER_REPOSITORY,
      contextOverride,
      contextOverride,
    ]);
    const variables = await withServerData(server, (store) =>
      builderOf(store.reader)
        .selectFrom("workflow_execution")
        .select("variables")
        .where("workflow_id", "=", id)
        .orderBy("id")
        .execute(),
    );
    expect(variables.map((row) => Object.values(JSON.parse(row.variables)))).toEqual([
      ["first"],
      ["first"],
      ["second"],
      ["second"],
    ]);
  });

  test("of a delivery with parameters runs the manual trigger as it is now", async () => {
    const workflow = await addWorkflow(server);
    const first = await send(workflow, undefined, { "x-github-delivery": "one" });
    expect(first.status).toBe(202);
    const other = {
      repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/team/boat.git"] } },
    };
    await update(workflow.id, { triggers: [{ ...MANUAL, context: other }] });
    const [again] = await redeliverNewest(workflow.id);
    expect(again).toMatchObject({
      source: "SOURCE_WEBHOOK",
      verdict: "TRIGGER_VERDICT_STARTED",
      deliveryId: "one",
    });
    const executions = await executionsOf(server, workflow.id);
    expect(executions.at(-1).spec.trigger.context).toMatchObject(other);
    // What its sender delivers once more is still a duplicate.
    expect((await send(workflow, undefined, { "x-github-delivery": "one" })).status).toBe(200);
  });

  describe("of a long body", () => {
    const declared = (payloadField: string) => ({ key: "word", payloadField, defaultValue: "none" });
    const prompt = "say {{ .Parameters.word }}";
    const promptOf = async (workflowId: string) =>
      (await executionsOf(server, workflowId)).at(-1).spec.trigger.context.agent.prompt;

    /** A workflow to which a body of so many characters of JSON was delivered. */
    const delivered = async (payloadField: string, characters: number) => {
      const workflow = await addWorkflow(server, {
        triggers: [{ manual: {}, context: { agent: { prompt } } }],
        parameters: [declared(payloadField)],
      });
      const body = { issue: { title: "hello" }, filler: "" };
      body.filler = "x".repeat(characters - JSON.stringify(body).length);
      const text = Buffer.from(JSON.stringify(body));
      await deliver(server, workflow.id, text, hubSignature(workflow.secret, text));
      return workflow.id;
    };

    test.each([65_535, 65_536, 65_537])(
      "of %i characters runs with the value that it gave",
      async (length) => {
        const id = await delivered("issue.title", length);
        expect(await promptOf(id)).toBe("say hello");
        for (const _ of ["the delivery", "its redelivery"]) {
          expect(await redeliverNewest(id)).toMatchObject([{ verdict: "TRIGGER_VERDICT_STARTED" }]);
          expect(await promptOf(id)).toBe("say hello");
        }
        expect(await executionsOf(server, id)).toHaveLength(3);
      },
    );

    test("runs with the default where it did not have the field", async () => {
      const id = await delivered("issue.number", 65_537);
      expect(await redeliverNewest(id)).toMatchObject([{ verdict: "TRIGGER_VERDICT_STARTED" }]);
      expect(await promptOf(id)).toBe("say none");
    });

    test("is refused where a field is needed that was not kept", async () => {
      const [kept, lost] = [await delivered("issue.number", 65_536), await delivered("issue.number", 65_537)];
      for (const id of [kept, lost]) await update(id, { parameters: [declared("issue.title")] });
      expect(await redeliverNewest(kept)).toMatchObject([{ verdict: "TRIGGER_VERDICT_STARTED" }]);
      expect(await promptOf(kept)).toBe("say hello");
      expect(await redeliverNewest(lost)).toMatchObject([
        {
          verdict: "TRIGGER_VERDICT_REFUSED",
          reason: expect.stringContaining("have its sender deliver it again"),
        },
      ]);
    });
  });

  test("of a pull request passes the check for duplicates, and goes to its trigger alone", async () => {
    const workflow = await addWorkflow(server, { triggers: [onPullRequest(), MANUAL, onPullRequest()] });
    const answer = await send(workflow, openedPullRequest());
    const [{ triggerEventId }] = answer.body.verdicts;
    const again = await redeliver(triggerEventId);
    expect(again.body.triggerEvents).toMatchObject([
      { verdict: "TRIGGER_VERDICT_STARTED", triggerIndex: 0, pullRequest: { id: "41" } },
    ]);
    const executions = await executionsOf(server, workflow.id);
    expect(executions).toHaveLength(3);
    expect(executions.at(-1).spec.trigger).toEqual(executions[0].spec.trigger);
    // The key is still held by the first start.
    expect((await send(workflow, openedPullRequest())).status).toBe(200);
  });

  test("that matched nothing goes to every trigger that matches by now", async () => {
    const project = await post(server, "ProjectService/CreateProject", {
      name: "Harbour",
      initializer: repository("git@git.example.org:lantern-works/harbour.git"),
    });
    const workflow = await addWorkflow(server, { triggers: [MANUAL] });
    await send(workflow, openedPullRequest());
    const context = { projects: { projectIds: [project.body.project.id] } };
    await update(workflow.id, { triggers: [onPullRequest(), MANUAL, onPullRequest(context)] });
    const made = await redeliverNewest(workflow.id);
    expect(made.map(({ triggerIndex }: { triggerIndex: number }) => triggerIndex)).toEqual([0, 2]);
    await update(workflow.id, { triggers: [MANUAL] });
    expect(await redeliverNewest(workflow.id)).toMatchObject([{ verdict: "TRIGGER_VERDICT_NO_MATCH" }]);
  });

  test("of an instant starts for the same instant", async () => {
    const time = { time: { cronExpression: IN_HALF_A_DAY }, context: OVER_REPOSITORY };
    const { id } = await addWorkflow(server, { triggers: [time] });
    await comeDue(id);
    const [first] = await ledgerOf(server, id);
    expect(first).toMatchObject({ source: "SOURCE_TIME", verdict: "TRIGGER_VERDICT_STARTED" });
    const [again] = await redeliverNewest(id);
    expect(again).toMatchObject({ source: "SOURCE_TIME", verdict: "TRIGGER_VERDICT_STARTED", at: first.at });
    const executions = await executionsOf(server, id);
    expect(executions.map(({ spec }) => spec.trigger.time)).toEqual([
      { triggeredAt: first.at },
      { triggeredAt: first.at },
    ]);
    await update(id, {
      triggers: [{ ...time, time: { ...time.time, overlapPolicy: "OVERLAP_POLICY_SKIP" } }],
    });
    expect(await redeliverNewest(id)).toMatchObject([{ verdict: "TRIGGER_VERDICT_OVERLAP" }]);
    await update(id, { triggers: [MANUAL] });
    expect(await redeliverNewest(id)).toMatchObject([
      { verdict: "TRIGGER_VERDICT_NO_MATCH", triggerIndex: 0 },
    ]);
  });

  test("that asked for nothing, or could not be read, says the same again", async () => {
    const workflow = await addWorkflow(server);
    const sign = (body: string) => hubSignature(workflow.secret, Buffer.from(body));
    for (const body of ['{"parameters":[]}', "not JSON"]) {
      await deliver(server, workflow.id, body, sign(body));
      const { verdict, reason } = (await ledgerOf(server, workflow.id)).at(-1);
      expect(await redeliverNewest(workflow.id)).toMatchObject([{ verdict, reason }]);
    }
  });

  test("to a workflow that is disabled starts nothing, and may be done again later", async () => {
    const workflow = await addWorkflow(server, { triggers: [MANUAL, onPullRequest()] });
    await start(workflow.id);
    const [manual] = await ledgerOf(server, workflow.id);
    await update(workflow.id, { disabled: true });
    await send(workflow, openedPullRequest());
    expect(await redeliverNewest(workflow.id)).toMatchObject([{ verdict: "TRIGGER_VERDICT_DISABLED" }]);
    expect((await redeliver(manual.id)).body.triggerEvents).toMatchObject([
      { verdict: "TRIGGER_VERDICT_DISABLED", source: "SOURCE_MANUAL" },
    ]);
    await update(workflow.id, { disabled: false });
    const off = (await ledgerOf(server, workflow.id)).at(-2);
    expect((await redeliver(off.id)).body.triggerEvents).toMatchObject([
      { verdict: "TRIGGER_VERDICT_STARTED", triggerIndex: 1 },
    ]);
  });

  test("that is refused is entered with the reason", async () => {
    const { id } = await addWorkflow(server);
    await start(id);
    const [entry] = await ledgerOf(server, id);
    await update(id, {
      action: { ...ONE_COMMAND, steps: [{ task: { command: "echo {{ .Parameters.name }}" } }] },
    });
    expect((await redeliver(entry.id)).body.triggerEvents).toMatchObject([
      {
        verdict: "TRIGGER_VERDICT_REFUSED",
        reason: expect.stringContaining("name"),
        workflowExecutionId: "",
      },
    ]);
    await update(id, { triggers: [], updateMask: "triggers" });
    expect((await redeliver(entry.id)).body.triggerEvents).toMatchObject([
      { verdict: "TRIGGER_VERDICT_REFUSED" },
    ]);
  });

  test("is for those who may start the workflow, in its name", async () => {
    const { id, secret } = await addWorkflow({ url: server.url, token: member.token });
    await deliver(server, id, RUN, hubSignature(secret, RUN));
    const [entry] = await ledgerOf(server, id);
    const stranger = await addMember(server, { organizationId, email: `${v7()}@example.org` });
    const { token } = await addOrganization(server, `other-${v7()}`);
    const refused = [
      await redeliver(entry.id, stranger.token),
      await redeliver(entry.id, token),
      await redeliver(v7()),
    ];
    expect(refused.map((answer) => [answer.status, reasonOf(answer)])).toEqual([
      [403, "PERMISSION_DENIED"],
      [404, "NOT_FOUND"],
      [404, "NOT_FOUND"],
    ]);
    expect((await redeliver(entry.id, member.token)).status).toBe(200);
    expect((await redeliver(entry.id)).status).toBe(200);
    const [, own, administrators] = await executionsOf(server, id);
    expect(own.metadata.creator.id).toBe(member.userId);
    expect(administrators.metadata.creator.id).not.toBe(member.userId);
  });

  test("of a bad signature is refused, since nothing of it was kept", async () => {
    const { id } = await addWorkflow(server);
    await deliver(server, id, RUN);
    let ledger = await ledgerOf(server, id);
    while (ledger.length === 0) ledger = await ledgerOf(server, id);
    const answer = await redeliver(ledger[0].id);
    expect([answer.status, answer.body.code, reasonOf(answer)]).toEqual([
      400,
      "failed_precondition",
      "PHASE_UNSUITABLE",
    ]);
  });

  test("under an idempotency key is done once", async () => {
    const { id } = await addWorkflow(server);
    await start(id);
    const [entry] = await ledgerOf(server, id);
    const once = () =>
      post(
        server,
        "WorkflowService/RedeliverWorkflowTriggerEvent",
        { triggerEventId: entry.id },
        server.token,
        { "idempotency-key": "redelivery-of-today" },
      );
    expect((await once()).body).toEqual((await once()).body);
    expect(await executionsOf(server, id)).toHaveLength(2);
  });
});

/** Lets the first time trigger of a workflow be due, and waits until it has fired. */
async function comeDue(workflowId: string): Promise<void> {
  await withServerData(server, (store) =>
    store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db)
        .updateTable("workflow_schedule")
        .set({ next_at: now - 24 * 3_600_000 })
        .where("workflow_id", "=", workflowId)
        .execute(),
    ),
  );
  while ((await ledgerOf(server, workflowId)).length === 0);
}
