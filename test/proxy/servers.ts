import { type Relay, startRelay } from "../clients/relay.ts";
import { freePort } from "../harness/free-port.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { runCommand, startServer, type TestServer, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";

/** Two servers over one database that trust the proxies of this machine. */
export interface ProxiedServers {
  /** Reaches the database directly. */
  readonly one: TestServer;
  /** Reaches it through a relay that a test can stop. */
  readonly other: TestServer;
  /** The token of both. */
  readonly token: string;
  /** Takes the database away from the other server. */
  cutOther(): Promise<void>;
  /** Gives it back. */
  restoreOther(): Promise<void>;
  /** Creates an organization in which nothing happens. @returns its administrator's token */
  addOrganization(): Promise<string>;
  /** Returns the lines that both servers have logged about calls. */
  calls(): Record<string, unknown>[];
  stop(): Promise<void>;
}

/** Starts them, over a database of their own. */
export async function startServers(): Promise<ProxiedServers> {
  const cluster: PostgresCluster = await startPostgres("embedded", ["fsync=off"]);
  const url = await emptyDatabase(cluster);
  const { port } = new URL(cluster.url);
  // It listens again later at the same one.
  const relayPort = await freePort();
  let relay: Relay = await startRelay(Number(port), relayPort);
  const dataDir = temporaryFolder();
  const start = (databaseUrl: string) =>
    startServer({
      dataDir,
      args: ["--trusted-proxies", "127.0.0.1", "--removal-interval", "86400"],
      env: { CHARTROOM_DATABASE_URL: databaseUrl },
    });
  const one = await start(url);
  const [token = ""] = await until(
    () => one.output().match(/cr_pat_\w+(?=\n)/g) ?? [],
    (found) => found.length > 0,
  );
  const other = await start(url.replace(`:${port}/`, `:${relayPort}/`));
  return {
    one: { ...one, token },
    other: { ...other, token },
    token,
    cutOther: () => relay.stop(),
    async restoreOther() {
      relay = await startRelay(Number(port), relayPort);
    },
    async addOrganization() {
      const { stdout, stderr } = await runCommand(
        ["organization", "create", "--name", "Idle", "--email", "idle@localhost", "--data-dir", dataDir],
        { CHARTROOM_DATABASE_URL: url },
      );
      const [idle] = stdout.match(/cr_pat_\w+/) ?? [];
      if (idle === undefined) throw new Error(`no organization was created: ${stdout}${stderr}`);
      return idle;
    },
    calls: () => [one, other].flatMap((server) => server.log().filter(({ msg }) => msg === "call")),
    async stop() {
      await Promise.all([one.kill(), other.kill()]);
      await relay.stop();
      await cluster.stop();
    },
  };
}
