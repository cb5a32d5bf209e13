import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post, repository } from "../harness/call.ts";
import { type DatabaseLink, startLinks } from "../harness/database-link.ts";
import { doAction, type FakeRunner, registerRunner, runnerOf, succeeded } from "../harness/fake-runner.ts";
import { endNodes } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase, onCluster } from "../harness/postgres-store.ts";
import { stopAll, type TestServer } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";
import { sequences, watch } from "../harness/watch.ts";

let cluster: PostgresCluster;
let url: string;
let one: TestServer;
let other: TestServer;
/** It gets no notification. */
let deaf: TestServer;
let link: DatabaseLink;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  url = await emptyDatabase(cluster);
  [link] = (await startLinks(url, 1)) as [DatabaseLink];
  await link.enter("mute");
  const servers = await startServers(url, 3, { urlOf: (index) => (index === 2 ? link.url : url) });
  [one, other, deaf] = servers as [TestServer, TestServer, TestServer];
});
afterAll(async () => {
  await stopAll();
  await endNodes();
  await cluster?.stop();
});

/** Makes a workflow of one action. Returns the function that starts it through the first server. */
async function startable(): Promise<() => Promise<unknown>> {
  const { workflow } = await succeeded(
    post(one, "WorkflowService/CreateWorkflow", {
      name: "Run",
      triggers: [
        {
          manual: {},
          context: {
            repositories: { repositoryUrls: { repoUrls: ["https://git.example.org/team/hello.git"] } },
          },
        },
      ],
      action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [task("true")] },
    }),
  );
  return () => succeeded(post(one, "WorkflowService/StartWorkflow", { workflowId: workflow.id }));
}

const createProject = (name: string) =>
  succeeded(
    post(one, "ProjectService/CreateProject", {
      name,
      initializer: repository("https://git.example.org/team/hello.git"),
    }),
  );

const watching = (server: TestServer) =>
  watch(createConnectTransport({ baseUrl: `${server.url}/api`, httpVersion: "1.1" }), server.token);

/** Returns a runner that calls another server. */
const by = (server: TestServer, { runnerId, token, environmentClassId }: FakeRunner): FakeRunner =>
  runnerOf(server, { runnerId, token, environmentClassIds: [environmentClassId] });

describe("an action that one server creates", () => {
  test("is leased by a runner that waits at another in half the time of one that finds it by looking", async () => {
    const [LEAD, MAX_ROUNDS] = [8, 60];
    const runner = await registerRunner(one);
    const start = await startable();
    const latencyAt = async (server: TestServer) => {
      const leased = by(server, runner).leaseOne();
      const began = performance.now();
      await start();
      const work = await leased;
      const took = performance.now() - began;
      await doAction(runner, work);
      return took;
    };
    const latencies: number[] = [];
    // A machine that stalls may turn one round over, and not most of them.
    let lead = 0;
    for (let round = 0; Math.abs(lead) < LEAD && round < MAX_ROUNDS; round++) {
      const [looking, woken] = [await latencyAt(deaf), await latencyAt(other)];
      latencies.push(woken);
      lead += woken < looking / 2 ? 1 : -1;
    }
    const median = latencies.toSorted((a, b) => a - b)[Math.floor(latencies.length / 2)] ?? Number.NaN;
    process.stdout.write(
      `leased through another server, from the call that starts it: median ${median.toFixed(0)} ms\n`,
    );
    expect(lead).toBe(LEAD);
  });

  test("is leased at a server that gets no notification all the same", async () => {
    const runner = await registerRunner(one, { name: "At the deaf one" });
    const start = await startable();
    for (let round = 0; round < 3; round++) {
      const leased = by(deaf, runner).leaseOne();
      await start();
      await doAction(runner, await leased);
    }
    expect(await link.dropped()).toBeGreaterThan(0);
  });
});

describe("a stream of events", () => {
  test("at a server that gets no notification misses none, and comes to a halt at none", async () => {
    const events = watching(deaf);
    await events.opened;
    const dropped = await link.dropped();
    for (let count = 1; count <= 3; count++) {
      await createProject(`unheard ${count}`);
      await events.until(count);
    }
    expect(await link.dropped()).toBeGreaterThan(dropped);
    const [first = 0, ...rest] = sequences(events.messages);
    expect(rest).toEqual(rest.map((_, index) => first + index + 1));
    events.cancel();
  });

  test("goes on when the engine ends the connections that wait for notifications", async () => {
    const events = watching(other);
    await events.opened;
    const sessions = "from pg_stat_activity where application_name = 'chartroom session'";
    for (let count = 1; count <= 3; count++) {
      await onCluster(url, `select pg_terminate_backend(pid) ${sessions}`);
      await createProject(`between ${count}`);
      await events.until(count);
    }
    const [first = 0, ...rest] = sequences(events.messages);
    expect(rest).toEqual(rest.map((_, index) => first + index + 1));
    events.cancel();
    // All of them are back, and the notifications with them.
    await until(
      async () => (await onCluster(url, `select ${sessions}`)).rowCount,
      (count) => count === 3,
    );
  });
});
