import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { endNodes, type NodeProcess, startNode } from "../harness/node-process.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { until } from "../harness/until.ts";

let cluster: PostgresCluster;
let killed: NodeProcess;
beforeAll(async () => {
  cluster = await startPostgres("embedded");
  killed = startNode(`
    import { startPostgres } from "./test/harness/postgres-cluster.ts";
    print((await startPostgres("embedded")).folder);
    await nextLine();
  `);
});
afterAll(async () => {
  await endNodes();
  await cluster?.stop();
});

test("the folder of a run that was killed is removed at the next start, and those of others stay", async () => {
  const folder = String(await killed.next());
  const engine = Number(readFileSync(join(folder, "data/postmaster.pid"), "utf8").split("\n")[0]);
  await killed.kill();
  expect(existsSync(folder)).toBe(true);
  const next = await startPostgres("embedded");
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(cluster.folder)).toBe(true);
  await next.stop();
  // It would end by itself within a minute, as its folder is gone.
  process.kill(engine, "SIGQUIT");
  await until(
    () => existsSync(`/proc/${engine}`),
    (runs) => !runs,
  );
});
