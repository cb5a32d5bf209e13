import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openData } from "../src/commands/open-data.ts";
import { createOrganizationWithToken } from "../src/services/access/organization-creation.ts";
import { type Answer, post } from "../test/harness/call.ts";
import { dataConfigOf, nameDatabase } from "../test/harness/data-config.ts";
import { startServer, stopAll, type TestServer, temporaryFolder } from "../test/harness/server.ts";
import { allProcessorsMs, processorMs } from "./machine.ts";

/** Processor time in milliseconds. */
export interface ProcessorTimes {
  /** All servers. */
  readonly server: number;
  /** The runners and the programs that they started. */
  readonly runners: number;
  /** Everything else on the machine, except this process. */
  readonly others: number;
}

/** A new server with its runners, each in a separate process. */
export interface Site {
  readonly server: TestServer;
  /** The tokens of the administrators of its organizations. */
  readonly tokens: readonly string[];
  /** Calls an operation as an administrator, by default of the first organization. Throws unless it succeeds. */
  call(operation: string, body: object, token?: string): Promise<Answer["body"]>;
  /** Makes the runners start to poll for work. */
  begin(): void;
  /** Returns the processor times so far. */
  processors(): ProcessorTimes;
  close(): Promise<void>;
}

/** A registered runner process. It polls for work at once, or after `begin` if that is present. */
export interface StartedRunner {
  readonly process: ChildProcess;
  begin?(): void;
}

export type StartRunner = (
  server: TestServer,
  stateDir: string,
  /** One token for each organization that the runner works for. */
  exchangeTokens: readonly string[],
) => Promise<StartedRunner>;

const RUNNERS = 4;

/** The default of the server. */
const DATABASE_CONNECTIONS = "8";

export interface SiteOptions {
  /** The database of the server; SQLite by default. */
  readonly databaseUrl?: string;
  /** Number of organizations; 1 by default. With several, each has one of the runner processes. */
  readonly organizations?: number;
  /** Number of servers over the database, each with its share of the runner processes; 1 by default. */
  readonly servers?: number;
}

/** Starts one server, or several over one database, and four runner processes. */
export async function openSite(
  startRunner: StartRunner,
  { databaseUrl, organizations = 1, servers: serverCount = 1 }: SiteOptions = {},
): Promise<Site> {
  const dataDir = temporaryFolder();
  const args = ["--log-level", "warn", "--rate-limits", "off"];
  if (databaseUrl !== undefined) {
    nameDatabase(dataDir, databaseUrl);
    args.push("--database-connections", DATABASE_CONNECTIONS);
  }
  rmSync(dataDir, { recursive: true });
  const server = await startServer({ dataDir, args });
  const servers = [server];
  while (servers.length < serverCount) servers.push(await startAnother(server, databaseUrl ?? "", args));
  const tokens = [server.token, ...(await addOrganizations(dataDir, organizations - 1))];
  const call = async (operation: string, body: object, token = server.token) => {
    const answer = await post(server, operation, body, token);
    if (answer.status !== 200) throw new Error(`${operation} answered ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const folder = temporaryFolder();
  const newRunner = async (_: unknown, index: number) => {
    const name = `Runner ${index + 1}`;
    const served = tokens.filter((_, at) => tokens.length === 1 || at % RUNNERS === index);
    const made = served.map((token) => call("RunnerService/CreateRunner", { name }, token));
    const exchangeTokens = (await Promise.all(made)).map(({ exchangeToken }) => exchangeToken);
    return startRunner(servers[index % serverCount] ?? server, join(folder, name), exchangeTokens);
  };
  const runners = await Promise.all(Array.from({ length: RUNNERS }, newRunner));
  return {
    server,
    tokens,
    call,
    begin() {
      for (const runner of runners) runner.begin?.();
    },
    processors() {
      const own = servers.reduce((sum, each) => sum + processorMs(each.process.pid), 0);
      const theirs = runners.reduce((sum, runner) => sum + processorMs(runner.process.pid), 0);
      const others = allProcessorsMs() - own - theirs - processorMs(process.pid);
      return { server: own, runners: theirs, others };
    },
    async close() {
      for (const runner of runners) {
        runner.process.kill("SIGTERM");
        if (runner.process.exitCode === null) await once(runner.process, "exit");
      }
      for (const each of servers) await each.stop();
      await stopAll();
    },
  };
}

/** Starts another server over a server's database, with the same keys. */
function startAnother(
  { dataDir }: TestServer,
  databaseUrl: string,
  args: readonly string[],
): Promise<TestServer> {
  const copy = join(temporaryFolder(), "data");
  cpSync(dataDir, copy, { recursive: true });
  nameDatabase(copy, databaseUrl);
  return startServer({ dataDir: copy, args });
}

/** Creates more organizations while the server runs, as an operator does. Returns their administrators' tokens. */
async function addOrganizations(dataDir: string, count: number): Promise<string[]> {
  if (count === 0) return [];
  const { store, keys } = await openData(dataConfigOf(dataDir));
  const tokens: string[] = [];
  for (let number = 1; number <= count; number++) {
    const { token } = await createOrganizationWithToken(store, keys, {
      operation: "bench",
      organizationName: `Organization ${number}`,
      accountName: "Administrator",
      email: `administrator-${number}@localhost`,
    });
    tokens.push(token);
  }
  await store.close();
  return tokens;
}
