import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { openData } from "../../src/commands/open-data.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { dataConfigOf } from "../harness/data-config.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import {
  addWorkflow,
  deliver,
  IN_HALF_A_DAY,
  OVER_REPOSITORY,
  type TestWorkflow,
  verdictsOf,
} from "../harness/webhook.ts";

const ROUNDS = 3;
const DAY_MS = 24 * 3_600_000;
const RUN = Buffer.from('{"parameters":{}}');
/** TRIGGER_VERDICT_STARTED. */
const STARTED = 1;

let server: TestServer;
let store: Store;
beforeEach(async () => {
  server = await startServer();
  ({ store } = await openData(dataConfigOf(server.dataDir)));
});
afterEach(() => store.close());
afterAll(stopAll);

/** Kills the server and starts it again on the same data. */
async function killAndRestart(): Promise<void> {
  const { dataDir, token } = server;
  await server.kill();
  server = { ...(await startServer({ dataDir })), token };
}

const executions = () => builderOf(store.reader).selectFrom("workflow_execution").select("id").execute();

/** Entries that started an execution which is there. */
const started = () =>
  builderOf(store.reader)
    .selectFrom("workflow_trigger_event")
    .innerJoin("workflow_execution", "workflow_execution.id", "workflow_trigger_event.execution_id")
    .select(["workflow_trigger_event.workflow_id", "workflow_execution.trigger_index"])
    .where("workflow_trigger_event.verdict", "=", STARTED)
    .execute();

describe("a server that is killed", () => {
  test(`while instants come due has run each of them once, ${ROUNDS} times`, async () => {
    const time = { time: { cronExpression: IN_HALF_A_DAY }, context: OVER_REPOSITORY };
    const triggers = Array(10).fill(time);
    for (let round = 1; round <= ROUNDS; round += 1) {
      const made: string[] = [];
      while (made.length < 20) made.push((await addWorkflow(server, { triggers })).id);
      const before = (await executions()).length;
      await store.write(SYSTEM, "test", ({ db, now }) =>
        builderOf(db)
          .updateTable("workflow_schedule")
          .set({ next_at: now - DAY_MS })
          .where("workflow_id", "in", made)
          .execute(),
      );
      while ((await executions()).length === before) await pause(1);
      await killAndRestart();
      const due = () =>
        builderOf(store.reader)
          .selectFrom("workflow_schedule")
          .select("next_at")
          .where("next_at", "<=", Date.now())
          .execute();
      await until(due, (rows) => rows.length === 0);
      const starts = (await started()).filter(({ workflow_id }) => made.includes(workflow_id));
      const names = starts.map(({ workflow_id, trigger_index }) => `${workflow_id} ${trigger_index}`);
      expect(new Set(names).size).toBe(200);
      expect(names).toHaveLength(200);
      expect(await executions()).toHaveLength(before + 200);
    }
  });

  test(`while deliveries arrive has done each of them once, however often it is sent, ${ROUNDS} times`, async () => {
    const workflow = await addWorkflow(server);
    const sent = new Map<string, string>();
    for (let round = 1; round <= ROUNDS; round += 1) {
      const ids = Array.from({ length: 200 }, () => v7());
      const answered = Promise.withResolvers<void>();
      const sending = ids.map(async (id) => {
        const execution = await send(workflow, id).catch(() => undefined);
        if (execution === undefined) return;
        sent.set(id, execution);
        if (sent.size > (round - 1) * ids.length + 20) answered.resolve();
      });
      await answered.promise;
      await killAndRestart();
      await Promise.all(sending);
      for (const id of ids) {
        const execution = await send(workflow, id);
        expect(execution).toBe(sent.get(id) ?? execution);
        sent.set(id, execution);
      }
      const there = (await executions()).map(({ id }) => id);
      expect(there.toSorted()).toEqual([...sent.values()].toSorted());
      expect(await started()).toHaveLength(there.length);
    }
  });
});

/** Sends a delivery under an id; the execution that it, or the first of its copies, started. */
async function send({ id, secret }: TestWorkflow, deliveryId: string): Promise<string> {
  const headers = { "x-gitlab-token": secret, "idempotency-key": deliveryId };
  const answer = await deliver(server, id, RUN, headers);
  expect([
    [202, "STARTED"],
    [200, "DUPLICATE"],
  ]).toContainEqual(verdictsOf(answer));
  return answer.body.verdicts[0].workflowExecutionId;
}
