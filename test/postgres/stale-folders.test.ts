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
  // Any test that starts one meanwhile removes it, too, of which one may still write there.
  await until(
    async () => {
      const next = await startPostgres("embedded");
      const isLeft = existsSync(folder);
      expect(existsSync(cluster.folder)).toBe(true);
      await next.stop();
      return isLeft;
    },
    (isLeft) => !isLeft,
  );
  // It ends by itself within a minute, as its folder is gone, and may have.
  try {
    process.kill(engine, "SIGQUIT");
  } catch (error) {
    expect(error).toMatchObject({ code: "ESRCH" });
  }
  await until(
    () => existsSync(`/proc/${engine}`),
    (runs) => !runs,
  );
});
