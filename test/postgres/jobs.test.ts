import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { leaders, startServers } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";
import { addWorkflow, executionsOf, IN_HALF_A_DAY, OVER_REPOSITORY } from "../harness/webhook.ts";

const DAY_MS = 24 * 3_600_000;
const DAILY = { time: { cronExpression: IN_HALF_A_DAY }, context: OVER_REPOSITORY };

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
});
afterAll(async () => {
  await stopAll();
  await cluster?.stop();
});

/** Makes workflows that start by themselves, once an instant of theirs is due. */
async function scheduled(server: TestServer, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push((await addWorkflow(server, { triggers: [DAILY] })).id);
  return ids;
}

const makeDue = (url: string, ids: readonly string[]) =>
  onCluster(
    url,
    `update workflow_schedule set next_at = ${Date.now() - DAY_MS}
    where workflow_id in (${ids.map((id) => `'${id}'`)})`,
  );

/** Waits until each has started once, by the answers of a server, and checks that none did twice. */
async function untilStarted(server: TestServer, ids: readonly string[]): Promise<void> {
  const counts = async () => {
    const found = await Promise.all(ids.map((id) => executionsOf(server, id)));
    return found.map((executions) => executions.length);
  };
  await until(counts, (all) => all.every((count) => count > 0));
  expect(await counts()).toEqual(ids.map(() => 1));
}

describe("jobs of several servers", () => {
  test("move to another when the one that runs them is killed", async () => {
    const url = await emptyDatabase(cluster);
    const [first, second] = (await startServers(url, 3)) as [TestServer, TestServer, TestServer];
    const ids = await scheduled(first, 3);
    const began = performance.now();
    await first.kill();
    await makeDue(url, ids);
    await untilStarted(second, ids);
    report("killed", performance.now() - began);
  });

  test("move to another when the one that runs them is suspended, which writes nothing when it goes on", async () => {
    const url = await emptyDatabase(cluster);
    const [first, second] = (await startServers(url, 3)) as [TestServer, TestServer, TestServer];
    const [leader] = await leaders(url);
    const [early, late] = [await scheduled(first, 3), await scheduled(first, 10)];
    const began = performance.now();
    first.process.kill("SIGSTOP");
    await makeDue(url, early);
    await untilStarted(second, early);
    report("paused", performance.now() - began);
    expect(await leaders(url)).not.toContain(leader);
    // Both see them at once: the one that leads, and the one that believes that it does.
    await makeDue(url, late);
    first.process.kill("SIGCONT");
    await untilStarted(second, late);
    // It serves again, and its jobs have failed by nothing but that, or that it was suspended in a transaction.
    await untilStarted(first, [...early, ...late]);
    const failures = first.log().filter(({ msg }) => msg === "a job failed");
    expect(failures.filter(({ err }) => !JSON.stringify(err).includes("StoreUnavailable"))).toEqual([]);
    expect(first.process.exitCode).toBeNull();
    first.process.kill("SIGTERM");
    await once(first.process, "exit");
  });
});

function report(what: string, tookMs: number): void {
  process.stdout.write(`jobs of a server that is ${what} go on after ${(tookMs / 1000).toFixed(1)} s\n`);
}
