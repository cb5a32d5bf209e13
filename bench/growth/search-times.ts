import type { Load } from "../load/load.ts";
import type { LoadRequest, LoadResult } from "../load/task.ts";
import { type GrownServer, type GrowthSizes, logFigures } from "./grown-server.ts";
import { type SearchKind, searchRequests } from "./searches.ts";

/** The times of searches of one kind on data of one size, in each round. */
export interface SearchRow {
  readonly projects: number;
  readonly title: string;
  readonly mostMs: number;
  readonly results: LoadResult[];
  /** The longest of the warm-up searches, in each round. */
  readonly firstMs: number[];
}

/** Measures searches of every kind on one connection, on data of every size. The first round is not measured. */
export async function searchRows(
  servers: readonly GrownServer[],
  load: Load,
  { rounds, searchSeconds: seconds }: GrowthSizes,
  kinds: readonly SearchKind[],
): Promise<SearchRow[]> {
  const asked = (await Promise.all(servers.map((server) => askedOf(server, kinds)))).flat();
  for (let round = 0; round <= rounds; round++) {
    for (const { server, requests, row, token } of asked) {
      const task = { form: "json", url: server.peer.url, token, connections: 1, requests } as const;
      // Warm up first: some machines drop data from their cache that has not been read for a minute.
      const first = await load.run({ ...task, seconds, amount: requests.length });
      if (round === 0) continue;
      row.firstMs.push(first.longestMs);
      const timed = await load.run({ ...task, seconds });
      // Some searches take longer than a round. Then only the warm-up has results.
      const result = timed.answered > 0 ? timed : first;
      if (result.failed > 0) throw new Error(`${row.title}: ${result.failed} searches failed`);
      row.results.push(result);
      logFigures(`search in ${row.projects}: ${row.title}`, {
        "p50 ms": result.p50Ms,
        "p99 ms": result.p99Ms,
      });
    }
  }
  return asked.map(({ row }) => row);
}

interface Asked {
  readonly server: GrownServer;
  readonly requests: readonly LoadRequest[];
  readonly row: SearchRow;
  readonly token: string;
}

async function askedOf(server: GrownServer, kinds: readonly SearchKind[]): Promise<Asked[]> {
  const { token, otherTokens } = server.data;
  const rows = kinds.map(async (kind) => {
    const asked = (title: string, requests: readonly LoadRequest[]): Asked => {
      const { mostMs } = kind;
      return {
        server,
        requests,
        row: { projects: server.projects, title, mostMs, results: [], firstMs: [] },
        token: kind.isOfSmallOne ? (otherTokens[0] ?? token) : token,
      };
    };
    const first = asked(kind.title, searchRequests(kind));
    return kind.isDeep
      ? [first, asked(`${kind.title}, the next page`, await pageBehind(server, kind))]
      : [first];
  });
  return (await Promise.all(rows)).flat();
}

/** Returns requests for the second page of each search that has one. */
async function pageBehind({ peer, data }: GrownServer, kind: SearchKind): Promise<LoadRequest[]> {
  const pages = searchRequests(kind).map(async ({ operation, body }, index) => {
    const res = await fetch(`${peer.url}/api/service.v1.${operation}`, {
      method: "POST",
      headers: { authorization: `Bearer ${data.token}`, "content-type": "application/json" },
      body,
    });
    if (res.status !== 200) throw new Error(`a search failed: ${await res.text()}`);
    const { pagination } = (await res.json()) as { pagination: { nextToken: string } };
    return pagination.nextToken === ""
      ? []
      : searchRequests(kind, pagination.nextToken).slice(index, index + 1);
  });
  return (await Promise.all(pages)).flat();
}
