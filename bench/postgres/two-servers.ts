import { cpSync } from "node:fs";
import type { Load } from "../load/load.ts";
import { startLoad } from "../load/load.ts";
import type { LoadResult, LoadTask } from "../load/task.ts";
import { threadsMs } from "../machine.ts";
import type { Options } from "../options.ts";
import { type Peer, startPeer } from "../peers/start-peer.ts";
import { POSTGRES_CASES } from "./cases.ts";
import type { BenchCluster } from "./cluster.ts";
import type { SeededDatabase } from "./seed-database.ts";

/** Reads from one server and from two over the same database in turn; one of each per round. */
export interface TwoServers {
  readonly one: Together[];
  readonly two: Together[];
}

/** The results of all servers together. */
export interface Together {
  readonly perSecond: number;
  /** Processor time of the servers per request, in microseconds. */
  readonly processorUs: number;
  readonly databaseUs: number;
}

/** Total number of connections, whatever the number of servers. */
const CONNECTIONS = 32;

export async function measureTwoServers(
  cluster: BenchCluster,
  data: SeededDatabase,
  load: Load,
  options: Options,
): Promise<TwoServers> {
  const found: TwoServers = { one: [], two: [] };
  const [other, servers]: [Load, Peer[]] = [startLoad(), []];
  try {
    for (const copy of ["first", "second"]) {
      const folder = `${data.dataDir}-${copy}`;
      cpSync(data.dataDir, folder, { recursive: true });
      servers.push(await startPeer("ours", folder, { databaseUrl: cluster.urlOf(data.database) }));
    }
    const requests = POSTGRES_CASES.find(({ name }) => name === "get")?.requests(data) ?? [];
    const ask = async (asked: readonly Peer[], seconds: number): Promise<Together> => {
      const before = asked.map(({ process }) => threadsMs(process.pid));
      const databaseBefore = cluster.processorMs();
      const task = ({ url }: Peer): LoadTask => ({
        form: "json",
        url,
        token: data.token,
        connections: CONNECTIONS / asked.length,
        requests,
        seconds,
      });
      const results = await Promise.all(
        asked.map((peer, index) => (index === 0 ? load : other).run(task(peer))),
      );
      const databaseMs = cluster.processorMs() - databaseBefore;
      const spent = asked.map(({ process }, index) => threadsMs(process.pid) - (before[index] ?? 0));
      for (const peer of asked) peer.clearLog();
      return together(results, sum(spent), databaseMs);
    };
    await ask(servers, options.warmUpSeconds.first);
    for (let round = 0; round < options.rounds; round++) {
      const counts = round % 2 === 0 ? ([1, 2] as const) : ([2, 1] as const);
      for (const count of counts) {
        (count === 1 ? found.one : found.two).push(await ask(servers.slice(0, count), options.seconds));
      }
    }
    return found;
  } finally {
    other.stop();
    for (const server of servers) await server.stop();
  }
}

function together(results: readonly LoadResult[], spentMs: number, databaseMs: number): Together {
  if (results.some(({ failed }) => failed > 0)) throw new Error("reads of two servers failed");
  const answered = sum(results.map((result) => result.answered));
  return {
    perSecond: (answered / Math.max(...results.map(({ tookMs }) => tookMs))) * 1000,
    processorUs: (spentMs * 1000) / answered,
    databaseUs: (databaseMs * 1000) / answered,
  };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
