import { cpSync } from "node:fs";
import { join } from "node:path";
import type { Case } from "./cases.ts";
import type { Seeded } from "./data/seed.ts";
import type { Load } from "./load/load.ts";
import type { LoadResult, LoadTask } from "./load/task.ts";
import { threadsMs } from "./machine.ts";
import type { Options } from "./options.ts";
import { expectSameAnswers, expectSameGrpcAnswers } from "./peers/same-answers.ts";
import { expectSameRows, type RowsOf } from "./peers/same-rows.ts";
import { type Peer, type PeerName, startPeer } from "./peers/start-peer.ts";

/** The result of a case on a peer in a round. */
export interface Measured {
  readonly perSecond: number;
  /** Processor time of the whole server process per request, in microseconds. */
  readonly processorUs: number;
  /** Processor time of the database per request, if it is a separate process. */
  readonly databaseUs?: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The results by `case peer`, in the order of the rounds. */
export type Measures = Map<string, Measured[]>;

export const measuresKey = (caseName: string, peer: string) => `${caseName} ${peer}`;

/** Minimum number of requests per measurement. Fewer would measure the disk's current state rather than the server. */
const FEWEST = 30;

/** A warm peer, and the task of a part of its measurement. */
interface Turn {
  readonly peer: Peer;
  readonly task: LoadTask;
  readonly parts: Part[];
}

/** The result of a part of a measurement. */
interface Part {
  readonly result: LoadResult;
  readonly spentMs: number;
  readonly databaseMs: number;
}

/** The place where the peers of a run have their data. */
export interface Site {
  /** Starts a peer on its own copy of the data. */
  start(name: PeerName, data: Seeded, copy: string, nodeFlags: readonly string[]): Promise<Peer>;
  readonly rowsOf?: RowsOf;
  /** Returns the processor time of the database, in milliseconds; absent if it is no separate process. */
  databaseMs?(): number;
}

/** A site where every peer has its own data folder. */
const FOLDERS: Site = {
  start(name, data, copy, nodeFlags) {
    const folder = `${data.dataDir}-${copy}`;
    cpSync(data.dataDir, folder, { recursive: true });
    return startPeer(name, folder, { nodeFlags });
  },
};

/** Measures the cases of a group. Each peer has its own process and its own copy of the data, and they take turns. */
export async function measureGroup(
  cases: readonly Case[],
  data: Seeded,
  load: Load,
  options: Options,
  measures: Measures,
  site = FOLDERS,
): Promise<void> {
  const peers = await startPeers(cases, data, options, site);
  try {
    await expectAlike(cases, data, peers, site);
    for (let round = 0; round < options.rounds; round++) {
      for (const each of cases) {
        const asked = each.peers.flatMap((name) => peers.get(name) ?? []);
        const turns: Turn[] = [];
        for (const peer of asked) turns.push(await warmUp(each, peer, data, load, round, options));
        for (let part = 0; part < options.parts; part++) {
          for (const { peer, task, parts } of rotated(turns, round + part)) {
            parts.push(await askPart(peer, task, load, site));
          }
        }
        for (const { peer, parts } of turns) {
          const key = measuresKey(each.name, peer.name);
          const measured = together(parts, site.databaseMs !== undefined);
          measures.set(key, [...(measures.get(key) ?? []), measured]);
          tell(round, key, measured);
        }
      }
    }
  } finally {
    for (const peer of peers.values()) await peer.stop();
  }
}

async function startPeers(
  cases: readonly Case[],
  data: Seeded,
  options: Options,
  site: Site,
): Promise<Map<PeerName, Peer>> {
  const named = new Set(cases.flatMap(({ peers }) => peers));
  const peers = new Map<PeerName, Peer>();
  for (const name of named) {
    if (options.only.length > 0 && !options.only.includes(name)) continue;
    const flags = options.profiles ? ["--cpu-prof", `--cpu-prof-dir=${join(options.profiles, name)}`] : [];
    peers.set(name, await site.start(name, data, `${cases[0]?.group}-${name}`, flags));
  }
  return peers;
}

/** Requires that all peers answer reads identically and write the same rows for a change of a project. */
async function expectAlike(
  cases: readonly Case[],
  data: Seeded,
  peers: Map<PeerName, Peer>,
  site: Site,
): Promise<void> {
  for (const { group, peers: names, requests, forms } of cases) {
    const asked = names.flatMap((name) => peers.get(name) ?? []);
    const [first] = requests(data);
    if (!first) continue;
    if (group === "reads" && !forms) await expectSameAnswers(asked, data.token, first);
    if (forms && asked.every(({ name }) => forms[name] === "grpc")) {
      await expectSameGrpcAnswers(asked, data.token, first);
    }
    if (CHANGES_OF_ONE.test(first.operation)) await expectSameRows(asked, data.token, first, site.rowsOf);
  }
}

const CHANGES_OF_ONE = /\/(Create|Update)Project$/;

/** Rotates the order of the peers by round and part, so that none profits from its position. */
function rotated<T>(list: readonly T[], by: number): T[] {
  const first = by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

async function warmUp(
  { connections, requests, forms }: Case,
  peer: Peer,
  data: Seeded,
  load: Load,
  round: number,
  { warmUpSeconds, seconds, parts }: Options,
): Promise<Turn> {
  const { name, url } = peer;
  const form = forms?.[name] ?? "json";
  const task = { form, url, token: data.token, connections, requests: requests(data), seconds };
  const result = await load.run({ ...task, seconds: warmUpSeconds[round === 0 ? "first" : "later"] });
  // A number of requests instead of a duration, so that all are answered and none is cut off.
  const perSecond = result.answered > 0 ? (result.answered / result.tookMs) * 1000 : 0;
  const amount = Math.max((perSecond * seconds) / parts, 2 * connections, FEWEST / parts);
  return { peer, task: { ...task, amount: Math.ceil(amount) }, parts: [] };
}

async function askPart(peer: Peer, task: LoadTask, load: Load, site: Site): Promise<Part> {
  const before = threadsMs(peer.process.pid);
  const databaseBefore = site.databaseMs?.() ?? 0;
  const result = await load.run(task);
  const spentMs = threadsMs(peer.process.pid) - before;
  const databaseMs = (site.databaseMs?.() ?? 0) - databaseBefore;
  peer.clearLog();
  if (result.failed > 0) {
    throw new Error(
      `${peer.name} refused ${result.failed} of ${task.amount} requests, or ended their connection: ${task.requests[0]?.operation}`,
    );
  }
  return { result, spentMs, databaseMs };
}

/** Combines the parts of a measurement: sums, and the means of the percentiles. */
function together(parts: readonly Part[], hasDatabase: boolean): Measured {
  const sum = (of: (part: Part) => number) => parts.reduce((so, part) => so + of(part), 0);
  const answered = sum(({ result }) => result.answered);
  return {
    perSecond: (answered / sum(({ result }) => result.tookMs)) * 1000,
    processorUs: (sum(({ spentMs }) => spentMs) * 1000) / answered,
    ...(hasDatabase && { databaseUs: (sum(({ databaseMs }) => databaseMs) * 1000) / answered }),
    p50Ms: sum(({ result }) => result.p50Ms) / parts.length,
    p99Ms: sum(({ result }) => result.p99Ms) / parts.length,
  };
}

export function tell(round: number, key: string, { perSecond, processorUs, p50Ms, p99Ms }: Measured): void {
  const figures = [`${Math.round(perSecond)}/s`, `${processorUs.toFixed(1)} µs of processor`];
  process.stderr.write(
    `round ${round + 1}  ${key.padEnd(32)} ${figures.join("  ")}  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms\n`,
  );
}
