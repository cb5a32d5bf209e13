import { CASES } from "../cases.ts";
import type { Load } from "../load/load.ts";
import type { LoadRequest, LoadResult, LoadTask } from "../load/task.ts";
import { type GrownServer, type GrowthSizes, logFigures } from "./grown-server.ts";
import { SEARCH_KINDS, searchRequests } from "./searches.ts";

/** Times of GetProject at a fixed rate, alone and during another load in turn; one of each per round. */
export interface SideBySide {
  readonly alone: LoadResult[];
  readonly loaded: LoadResult[];
  /** Answers per second of the other load. */
  readonly otherPerSecond: number[];
}

/** A request every 4 ms, 250 a second. */
const READ_EVERY_MS = 4;

/** 100 durable creates a second. */
const WRITE_EVERY_MS = 10;

/** Measures reads during continuous searches of every kind. */
export function readDuringSearches(
  server: GrownServer,
  load: Load,
  other: Load,
  sizes: GrowthSizes,
): Promise<SideBySide> {
  const requests = SEARCH_KINDS.flatMap((kind) => searchRequests(kind));
  return sideBySide("searches", server, load, other, sizes, { connections: 1, requests });
}

/** Measures reads during a steady load of writes. */
export function readDuringWrites(
  server: GrownServer,
  load: Load,
  other: Load,
  sizes: GrowthSizes,
): Promise<SideBySide> {
  const requests = requestsOf("create32", server);
  const task = { connections: 32, requests, everyMs: WRITE_EVERY_MS };
  return sideBySide("writes", server, load, other, sizes, task);
}

async function sideBySide(
  what: string,
  server: GrownServer,
  load: Load,
  other: Load,
  { rounds, sideSeconds: seconds }: GrowthSizes,
  meanwhile: Pick<LoadTask, "connections" | "requests" | "everyMs">,
): Promise<SideBySide> {
  const { peer, data } = server;
  const common = { form: "json", url: peer.url, token: data.token, seconds } as const;
  const reads: LoadTask = {
    ...common,
    connections: 32,
    requests: requestsOf("get", server),
    everyMs: READ_EVERY_MS,
  };
  const found: SideBySide = { alone: [], loaded: [], otherPerSecond: [] };
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    const alone = await load.run(reads);
    const [both, others] = await Promise.all([load.run(reads), other.run({ ...common, ...meanwhile })]);
    if (alone.failed + both.failed + others.failed > 0) throw new Error(`requests during ${what} failed`);
    if (round === 0) continue;
    found.alone.push(alone);
    found.loaded.push(both);
    found.otherPerSecond.push((others.answered / others.tookMs) * 1000);
    logFigures(`reads during ${what}`, {
      "p99 ms": both.p99Ms,
      "longest ms": both.longestMs,
      "alone p99 ms": alone.p99Ms,
      "alone longest ms": alone.longestMs,
    });
  }
  return found;
}

function requestsOf(name: string, { data }: GrownServer): readonly LoadRequest[] {
  return CASES.find((each) => each.name === name)?.requests(data) ?? [];
}
