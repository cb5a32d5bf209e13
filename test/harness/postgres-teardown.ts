import type { PostgresCluster } from "./postgres-cluster.ts";

/** Stops the server of a run. */
export default async function tearDown(): Promise<void> {
  await (globalThis as { postgresOfRun?: PostgresCluster }).postgresOfRun?.stop("SIGQUIT");
}
