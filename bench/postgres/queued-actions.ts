import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Figures } from "../figures.ts";
import { openSite } from "../site.ts";
import { startIdleRunner } from "../start-runner.ts";
import { processorFigures, startAll, workflow } from "../workloads.ts";
import type { BenchCluster } from "./cluster.ts";

/** The size of the workload. */
export interface PostgresSizes {
  readonly executions: number;
  /** Number of actions of an execution. */
  readonly actions: number;
}

const POLL_MS = 100;

/** Queues all executions before the first runner begins, as on SQLite, spread evenly over the organizations. */
export async function actionsOnPostgres(
  cluster: BenchCluster,
  database: string,
  { organizations, servers = 1 }: { readonly organizations: number; readonly servers?: number },
  { executions, actions }: PostgresSizes,
): Promise<Figures> {
  await cluster.run("postgres", `create database ${database}`);
  const site = await openSite(startIdleRunner, {
    databaseUrl: cluster.urlOf(database),
    organizations,
    servers,
  });
  const starts = await Promise.all(site.tokens.map((token) => workflow(site, actions, { token })));
  const each = executions / starts.length;
  // In turn, so that no organization starts ahead of the others.
  await startAll(Array.from({ length: each }, () => starts).flat());
  const [began, databaseBefore, before] = [Date.now(), cluster.processorMs(), site.processors()];
  site.begin();
  const finishedAt = await untilFinished(cluster.urlOf(database), each * starts.length, actions);
  const [databaseMs, after] = [cluster.processorMs() - databaseBefore, site.processors()];
  await site.close();
  const [done, tookMs] = [each * starts.length * actions, finishedAt - began];
  return {
    "actions a second": (done / tookMs) * 1000,
    "processor time of the database an action, ms": databaseMs / done,
    ...processorFigures(before, { ...after, others: after.others - databaseMs }, done, tookMs),
    "processors busy with the database": databaseMs / tookMs,
  };
}

/** Returns when the last execution ended, in milliseconds since 1970 UTC. @throws Error unless all actions were done */
async function untilFinished(url: string, executions: number, actions: number): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const numberOf = async (query: string) =>
    Number(Object.values((await client.query(query)).rows[0] ?? {})[0]);
  try {
    while ((await numberOf("select count(*) from workflow_execution where finished_at is null")) > 0) {
      await delay(POLL_MS);
    }
    const done = await numberOf("select count(*) from workflow_action where phase = 7 and failed = 0");
    if (done !== executions * actions)
      throw new Error(`${done} of ${executions * actions} actions were done`);
    return await numberOf("select max(finished_at) from workflow_execution");
  } finally {
    await client.end();
  }
}
