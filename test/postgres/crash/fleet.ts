import { setTimeout as delay } from "node:timers/promises";
import { type DatabaseLink, type LinkState, startLinks } from "../../harness/database-link.ts";
import type { PostgresCluster } from "../../harness/postgres-cluster.ts";
import type { Random } from "../../harness/random.ts";
import { startRoundRobin } from "../../harness/round-robin.ts";
import { startServer, type TestServer } from "../../harness/server.ts";
import { startServers } from "../../harness/several-servers.ts";

/** Servers over one database, behind a proxy: clients know no single one of them. */
export interface Fleet {
  readonly dataDir: string;
  /** The proxy, with a token that is valid on each server. */
  readonly api: { readonly url: string; readonly token: string };
  readonly links: readonly DatabaseLink[];
  /** Sends SIGKILL to a server and starts another in its place, as often as it takes. */
  replace(index: number): Promise<void>;
  /** Stops the process of a server for a time; the server that is there by then goes on. */
  pause(index: number, ms: number): Promise<void>;
  /** Ends all servers in good order. */
  stop(): Promise<void>;
  /** Returns what no server may do: end by itself, or log a failure that nothing outside explains. */
  problems(): string[];
}

/** Starts the servers, each with its own link to the database. */
export async function startFleet(url: string, count: number, args: readonly string[]): Promise<Fleet> {
  const links = await startLinks(url, count);
  const urlOf = (index: number) => links[index]?.url ?? url;
  const servers = await startServers(url, count, { args, urlOf });
  const { dataDir, token } = servers[0] as TestServer;
  const proxy = await startRoundRobin();
  const ended: TestServer[] = [];
  const problems: string[] = [];
  const expectedEnds = new Set<TestServer>();
  const enter = (server: TestServer, index: number) => {
    servers[index] = server;
    proxy.forwardTo(servers);
    server.process.once("exit", (code, signal) => {
      if (!expectedEnds.has(server)) problems.push(`a server ended by itself with ${code ?? signal}`);
    });
  };
  for (const [index, server] of servers.entries()) enter(server, index);
  return {
    dataDir,
    api: { url: proxy.url, token },
    links,
    async replace(index) {
      const server = servers[index] as TestServer;
      expectedEnds.add(server);
      await server.kill();
      ended.push(server);
      enter(await startUntilReady({ dataDir, args, url: urlOf(index) }), index);
    },
    async pause(index, ms) {
      const { process } = servers[index] as TestServer;
      process.kill("SIGSTOP");
      await delay(ms);
      process.kill("SIGCONT");
    },
    async stop() {
      await proxy.stop();
      for (const server of servers) {
        expectedEnds.add(server);
        const code = await server.stop();
        if (code !== 0) problems.push(`a server stopped with ${code}`);
        ended.push(server);
      }
    },
    problems: () => [...problems, ...ended.flatMap(unexplained)],
  };
}

interface Start {
  readonly dataDir: string;
  readonly args: readonly string[];
  readonly url: string;
}

/** Starts a server, again and again while the database is away, as a supervisor does. */
async function startUntilReady({ dataDir, args, url }: Start): Promise<TestServer> {
  for (;;) {
    try {
      return await startServer({ dataDir, args, env: { CHARTROOM_DATABASE_URL: url } });
    } catch (error) {
      // The sentence of a start that cannot reach the database; anything else is a fault.
      if (!/^chartroom: the database( \S+ at \S+)? cannot be used: /m.test((error as Error).message))
        throw error;
      await delay(200);
    }
  }
}

/** Returns the failures in a server's log that do not come from a database that is away or another server that leads. */
function unexplained(server: TestServer): string[] {
  return server
    .log()
    .filter(({ level, err, msg }) => {
      if (level !== "error" || msg === "the database accepts no changes; reads still work") return false;
      return !/StoreUnavailable/.test(JSON.stringify(err));
    })
    .map((line) => JSON.stringify(line));
}

/** How often what happens to the fleet. */
export interface Plan {
  readonly kills: number;
  readonly pauses: number;
  readonly pauseMs: number;
  readonly shutdowns: number;
  /** How the network is cut, once each. */
  readonly cuts: readonly LinkState[];
}

type Fate = "kill" | "pause";

/** Lets everything of the plan happen, at moments and to servers that the random choices give; `signal` ends it early. */
export async function disturb(
  random: Random,
  fleet: Fleet,
  cluster: PostgresCluster,
  plan: Plan,
  signal: AbortSignal,
): Promise<void> {
  const count = fleet.links.length;
  const fates: Fate[][] = Array.from({ length: count }, () => []);
  const deal = (fate: Fate, times: number) => {
    // Each server gets as many as the others, or one more.
    const first = random.integer(0, count - 1);
    for (let time = 0; time < times; time++) fates[(first + time) % count]?.push(fate);
  };
  deal("pause", plan.pauses);
  deal("kill", plan.kills);
  /** The moment is the point: no event could tell it. */
  const moment = (choices: Random, mostMs: number) =>
    delay(choices.integer(0, mostMs), undefined, { signal });
  const ofServers = fates.map(async (own, index) => {
    const choices = random.fork(`server ${index}`);
    for (const fate of choices.some(own, own.length)) {
      await moment(choices, 3_000);
      if (fate === "kill") await fleet.replace(index);
      else await fleet.pause(index, plan.pauseMs);
    }
  });
  const ofDatabase = async () => {
    const choices = random.fork("database");
    for (let time = 0; time < plan.shutdowns; time++) {
      await moment(choices, 20_000);
      await cluster.crash();
      await moment(choices, 2_000);
      await cluster.restart();
    }
  };
  const ofNetwork = async () => {
    const choices = random.fork("network");
    for (const state of choices.some(plan.cuts, plan.cuts.length)) {
      await moment(choices, 10_000);
      const cut = choices.some(fleet.links, choices.integer(1, count));
      await Promise.all(cut.map((link) => link.enter(state)));
      await moment(choices, 12_000);
      if (choices.chance(0.5)) await Promise.all(cut.map((link) => link.enter("refused")));
      await Promise.all(cut.map((link) => link.enter("open")));
    }
  };
  await Promise.all([...ofServers, ofDatabase(), ofNetwork()]);
}

/** Keeps one server from hearing of its commits for a while; `signal` ends that early. */
export async function loseAnswers({ links: [link] }: Fleet, signal: AbortSignal): Promise<void> {
  await link?.enter("unheard-commits");
  await delay(3_000, undefined, { signal });
  await link?.enter("open");
}
