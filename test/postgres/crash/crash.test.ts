import { afterAll, expect, test } from "@jest/globals";
import { recordProblems } from "../../crash/execution-problems.ts";
import { compare, createLedger } from "../../crash/ledger.ts";
import { readDescriptions, rowProblems } from "../../crash/rows.ts";
import { readState } from "../../crash/state.ts";
import { endNodes } from "../../harness/node-process.ts";
import { addOrganization } from "../../harness/organization.ts";
import { type PostgresCluster, startPostgres } from "../../harness/postgres-cluster.ts";
import { emptyDatabase } from "../../harness/postgres-store.ts";
import { printedRandom } from "../../harness/random.ts";
import { runCommand, stopAll, temporaryFolder } from "../../harness/server.ts";
import { until } from "../../harness/until.ts";
import { actionProblems, actionsOf, executeUntil, startSteadyRunner } from "./actions.ts";
import { disturb, loseAnswers, startFleet } from "./fleet.ts";
import { steadyCalls, writeUntil } from "./steady-client.ts";

const SERVERS = 4;
const CLIENTS = 8;
const PLAN = {
  kills: 30,
  pauses: 5,
  pauseMs: 15_000,
  shutdowns: 5,
  cuts: ["silent", "silent", "refused", "unheard-commits", "unheard-commits"],
} as const;
/** Jobs write alongside the requests; a lease outlives most of what happens, and not all. */
const ARGS = ["--removal-interval", "1", "--popularity-interval", "1", "--lease-duration", "15"];

let cluster: PostgresCluster;
const failed = new AbortController();
afterAll(async () => {
  failed.abort();
  await stopAll();
  await endNodes();
  await cluster?.stop();
});

const command = async (...args: string[]) => {
  const { code, stderr } = await runCommand(args);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
};

test("whatever happens to servers, database and network, what was acknowledged is there once", async () => {
  const random = printedRandom("crash over PostgreSQL");
  cluster = await startPostgres("embedded", ["max_connections=200"]);
  const url = await emptyDatabase(cluster);
  const fleet = await startFleet(url, SERVERS, [...ARGS, "--log-level", "warn"]);
  const { api, dataDir } = fleet;
  const other = await addOrganization({ dataDir }, "other");
  // Of its own, so that no runner changes the environments that the ledger knows.
  const workplace = { url: api.url, token: (await addOrganization({ dataDir }, "workplace")).token };
  const names = Array.from({ length: CLIENTS }, (_, index) => `client ${index}`);
  const tenants = [
    { token: api.token, names: names.slice(3) },
    { token: other.token, names: names.slice(0, 3) },
  ].map(({ token, names: own }) => ({
    calls: steadyCalls({ url: api.url, token }),
    token,
    ledger: createLedger(),
    clients: own.map((name) => ({
      name,
      projects: new Set<string>(),
      environments: new Set<string>(),
      count: 0,
    })),
  }));
  const runners = await Promise.all(["left", "right"].map((name) => startSteadyRunner(workplace, name)));

  let isOver = false;
  const over = () => isOver;
  const working = Promise.all([
    Promise.all(
      tenants.flatMap(({ calls, ledger, clients }) =>
        clients.map((client) => writeUntil(over, random.fork(client.name), calls, ledger, client)),
      ),
    ),
    Promise.all(runners.map(() => executeUntil(over, steadyCalls(workplace)))),
  ]);
  const began = performance.now();
  const disturbing = disturb(random.fork("fates"), fleet, cluster, PLAN, failed.signal);
  const sum = (name: "answered" | "failed" | "replayed") =>
    tenants.reduce((total, tenant) => total + tenant.calls.counts[name], 0);
  const disturbed = disturbing.then(async () => {
    // A slow machine has made few writes by now: more of them are cut off after their commit.
    while (sum("replayed") === 0) await loseAnswers(fleet, failed.signal);
  });
  disturbed.catch(() => {});
  await Promise.race([disturbed, working]);
  isOver = true;
  const executionIds = (await working)[1].flat();
  // Those of lost attempts are the runners' to remove.
  await until(
    async () => [...(await readState(workplace, workplace.token)).environments.keys()],
    (left) => left.length === 0,
  );
  await Promise.all(runners.map((runner) => runner.stop()));
  const seconds = Math.round((performance.now() - began) / 1000);

  const calls = steadyCalls(workplace);
  const actions = await actionsOf(calls, executionIds);
  const events = runners.flatMap((runner) => runner.events);
  expect(runners.flatMap(({ problems }) => problems)).toEqual([]);
  expect(actionProblems(actions, events)).toEqual([]);
  expect(await recordProblems(workplace, actions)).toEqual([]);
  const states = await Promise.all(tenants.map(({ token }) => readState(api, token)));
  await fleet.stop();
  expect(fleet.problems()).toEqual([]);

  const keyFile = ["--key-file", `${dataDir}/key.json`];
  await command("audit", "verify", "--database-url", url, "--data-dir", dataDir, ...keyFile);
  // The copy is one whose rows can be looked at in any way; moving verifies the chains again.
  const copy = `${temporaryFolder()}/copy`;
  await command("move", "--from", url, "--to", copy, ...keyFile);
  expect(await rowProblems(copy)).toEqual([]);
  const descriptions = await readDescriptions(copy);
  for (const [index, { ledger }] of tenants.entries()) {
    const state = states[index];
    if (state) compare(ledger, state, descriptions);
  }
  process.stdout.write(
    `${seconds} s: ${sum("answered")} writes acknowledged, ${sum("failed")} attempts without an answer, ` +
      `${sum("replayed")} answered from what was stored; ${actions.length} actions, ` +
      `${actions.filter(({ status }) => status.attempt > 1).length} attempted again\n`,
  );
  // The faults reached the clients, and did not keep them from working.
  expect(sum("failed")).toBeGreaterThan(0);
  expect(sum("replayed")).toBeGreaterThan(0);
  expect(sum("answered")).toBeGreaterThan(CLIENTS);
  expect(actions.length).toBeGreaterThan(0);
}, 600_000);
