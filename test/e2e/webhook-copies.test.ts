import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import type { Answer } from "../harness/call.ts";
import { withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import {
  addWorkflow,
  deliver,
  executionsOf,
  ledgerOf,
  MANUAL,
  type TestWorkflow,
  verdictsOf,
} from "../harness/webhook.ts";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../harness/webhook-payload.ts";
import { hubSignature, standardSignature } from "../harness/webhook-signing.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const DAY_MS = 24 * 3_600_000;
const COPIES = 1_000;
const RUN = Buffer.from('{"parameters":{}}');
const PULL_REQUEST = Buffer.from(JSON.stringify(openedPullRequest()));
const onPullRequest = { pullRequest: {}, context: { fromTrigger: {} } };

const named = ({ secret }: TestWorkflow, deliveryId: string, body = RUN) => ({
  ...hubSignature(secret, body),
  "x-github-delivery": deliveryId,
});

/** How often each verdict is in the ledger of a workflow. */
async function counts({ id }: TestWorkflow): Promise<Record<number, number>> {
  const rows = await withServerData(server, (store) =>
    builderOf(store.reader)
      .selectFrom("workflow_trigger_event")
      .select((eb) => ["verdict", eb.fn.countAll<number>().as("count")])
      .where("workflow_id", "=", id)
      .groupBy("verdict")
      .execute(),
  );
  return Object.fromEntries(rows.map(({ verdict, count }) => [verdict, count]));
}

const [STARTED, DUPLICATE] = [1, 2];

describe("a thousand copies at once", () => {
  test.each([
    ["of a delivery", MANUAL, () => ({}), RUN],
    ["of an event, under one id", onPullRequest, () => GITHUB_PULL_REQUEST, PULL_REQUEST],
    [
      "of an event, under as many ids",
      onPullRequest,
      (copy: number) => ({ ...GITHUB_PULL_REQUEST, "x-github-delivery": `copy-${copy}` }),
      PULL_REQUEST,
    ],
  ])("%s make one execution for each trigger that matches", async (_, trigger, headersOf, body) => {
    const isPullRequest = trigger === onPullRequest;
    const triggers = isPullRequest ? [trigger, MANUAL, trigger] : [trigger];
    const workflow = await addWorkflow(server, { triggers });
    const matching = isPullRequest ? 2 : 1;
    const copies = await Promise.all(
      Array.from({ length: COPIES }, (_, copy) =>
        deliver(server, workflow.id, body, { ...named(workflow, "one", body), ...headersOf(copy) }),
      ),
    );
    const ofStatus = (status: number) => copies.filter((each) => each.status === status);
    expect([ofStatus(202).length, ofStatus(200).length]).toEqual([1, COPIES - 1]);
    const executions = (await executionsOf(server, workflow.id)).map(({ id }) => id);
    expect(executions).toHaveLength(matching);
    const executionsIn = ({ body: { verdicts } }: Answer) =>
      verdicts.map(({ workflowExecutionId }: { workflowExecutionId: string }) => workflowExecutionId);
    for (const copy of copies) expect(executionsIn(copy)).toEqual(executions);
    expect(await counts(workflow)).toEqual({
      [STARTED]: matching,
      [DUPLICATE]: matching * (COPIES - 1),
    });
  });
});

describe("the id of a delivery", () => {
  test("is known again under each scheme", async () => {
    const workflow = await addWorkflow(server);
    const { id, secret } = workflow;
    const timestamp = Math.floor(Date.now() / 1000);
    const schemes = [
      named(workflow, "by-hub"),
      { "x-gitlab-token": secret, "idempotency-key": "by-lab" },
      standardSignature(secret, RUN, { id: "by-standard", timestamp }),
    ];
    for (const headers of schemes) {
      expect(verdictsOf(await deliver(server, id, RUN, headers))).toEqual([202, "STARTED"]);
      expect(verdictsOf(await deliver(server, id, RUN, headers))).toEqual([200, "DUPLICATE"]);
    }
    const ids = (await ledgerOf(server, id)).map(({ deliveryId }) => deliveryId);
    expect(ids).toEqual(["by-hub", "by-hub", "by-lab", "by-lab", "by-standard", "by-standard"]);
  });

  test("holds for its workflow alone, and where nothing is signed deliveries without one are each their own", async () => {
    const [first, second] = [await addWorkflow(server), await addWorkflow(server)];
    for (const workflow of [first, second]) {
      expect((await deliver(server, workflow.id, RUN, named(workflow, "same"))).status).toBe(202);
      for (const headers of [
        { "x-gitlab-token": workflow.secret },
        { authorization: `Bearer ${server.token}` },
      ]) {
        for (const _ of [1, 2]) {
          expect(verdictsOf(await deliver(server, workflow.id, RUN, headers))).toEqual([202, "STARTED"]);
        }
      }
    }
  });

  test("is known again whatever came of it, and the copy tells which trigger and reason", async () => {
    const workflow = await addWorkflow(server, { triggers: [] });
    const send = async () => {
      const answer = await deliver(server, workflow.id, RUN, named(workflow, "one"));
      return [...verdictsOf(answer), answer.body.verdicts[0].workflowExecutionId];
    };
    expect([await send(), await send()]).toEqual([
      [200, "NO_MATCH", ""],
      [200, "DUPLICATE", ""],
    ]);
  });

  test("is not taken by a delivery that is not believed", async () => {
    const workflow = await addWorkflow(server);
    const forged = { ...named(workflow, "one"), ...hubSignature("another secret", RUN) };
    expect((await deliver(server, workflow.id, RUN, forged)).status).toBe(401);
    expect((await deliver(server, workflow.id, RUN, named(workflow, "one"))).status).toBe(202);
  });

  test("is known again for 24 hours, and then counts from the start", async () => {
    const workflow = await addWorkflow(server);
    const send = () => deliver(server, workflow.id, RUN, named(workflow, "one"));
    /** Lets the first arrival be as old as this. */
    const age = (ms: number) =>
      withServerData(server, (store) =>
        store.write(SYSTEM, "test", ({ db, now }) =>
          builderOf(db)
            .updateTable("webhook_delivery")
            .set({ at: now - ms })
            .where("workflow_id", "=", workflow.id)
            .execute(),
        ),
      );
    expect(verdictsOf(await send())).toEqual([202, "STARTED"]);
    await age(DAY_MS - 60_000);
    expect(verdictsOf(await send())).toEqual([200, "DUPLICATE"]);
    await age(DAY_MS);
    expect(verdictsOf(await send())).toEqual([202, "STARTED"]);
    expect(verdictsOf(await send())).toEqual([200, "DUPLICATE"]);
    expect(await executionsOf(server, workflow.id)).toHaveLength(2);
  });
});

describe("a body that X-Hub-Signature-256 signs", () => {
  const WITH_PARAMETERS = Buffer.from('{"parameters":{"unused":"x"}}');
  const send = ({ id, secret }: TestWorkflow, headers: Record<string, string> = {}, body = WITH_PARAMETERS) =>
    deliver(server, id, body, { ...hubSignature(secret, body), ...headers });

  test("counts once, under whichever id and event it is replayed, and the answer says why", async () => {
    const workflow = await addWorkflow(server);
    expect(verdictsOf(await send(workflow, { "x-github-delivery": "one" }))).toEqual([202, "STARTED"]);
    const [{ id: executionId }] = await executionsOf(server, workflow.id);
    const capitals = hubSignature(workflow.secret, WITH_PARAMETERS)
      ["x-hub-signature-256"].slice(7)
      .toUpperCase();
    for (const headers of [
      { "x-github-delivery": "two" },
      {},
      { "x-github-event": "push" },
      { "x-hub-signature-256": `sha256=${capitals}` },
      { "x-gitlab-token": workflow.secret, "idempotency-key": "three" },
    ]) {
      const copy = await send(workflow, headers);
      expect(verdictsOf(copy)).toEqual([200, "DUPLICATE"]);
      expect(copy.body.verdicts[0].reason).toMatch(/counts once in 24 hours/);
      expect(copy.body.verdicts[0].workflowExecutionId).toBe(executionId);
    }
    expect(verdictsOf(await send(workflow, { "x-github-delivery": "one" }, RUN))).toEqual([200, "DUPLICATE"]);
    expect(verdictsOf(await send(workflow, {}, RUN))).toEqual([202, "STARTED"]);
    expect(await executionsOf(server, workflow.id)).toHaveLength(2);
  });

  test("counts once though it first came as a host's event, so that it cannot be made a start by hand", async () => {
    const workflow = await addWorkflow(server);
    expect(verdictsOf(await send(workflow, { "x-github-event": "push" }))).toEqual([200, "NO_MATCH"]);
    expect(verdictsOf(await send(workflow))).toEqual([200, "DUPLICATE"]);
    expect(await executionsOf(server, workflow.id)).toEqual([]);
  });

  test("counts each time next to a signature of Standard Webhooks, and not without that again", async () => {
    const workflow = await addWorkflow(server);
    const timestamp = Math.floor(Date.now() / 1000);
    for (const id of ["one", "two"]) {
      const both = standardSignature(workflow.secret, WITH_PARAMETERS, { id, timestamp });
      expect(verdictsOf(await send(workflow, both))).toEqual([202, "STARTED"]);
    }
    expect(verdictsOf(await send(workflow))).toEqual([200, "DUPLICATE"]);
  });

  test("counts again after 24 hours", async () => {
    const workflow = await addWorkflow(server);
    expect(verdictsOf(await send(workflow))).toEqual([202, "STARTED"]);
    await withServerData(server, (store) =>
      store.write(SYSTEM, "test", ({ db, now }) =>
        builderOf(db)
          .updateTable("webhook_delivery")
          .set({ at: now - DAY_MS })
          .where("workflow_id", "=", workflow.id)
          .execute(),
      ),
    );
    expect(verdictsOf(await send(workflow))).toEqual([202, "STARTED"]);
  });
});
