import type { Load } from "../load/load.ts";
import { threadsMs } from "../machine.ts";
import { type GrownServer, logFigures, type PageOrder } from "./grown-server.ts";
import { middlePages } from "./pages.ts";

/** Times of a page in the middle, one for each round. */
export interface PageRow {
  readonly projects: number;
  readonly order: PageOrder;
  /** Medians at one connection, in milliseconds. */
  readonly p50Ms: number[];
  /** Processor time of the server, in microseconds. */
  readonly processorUs: number[];
}

/** Number of pages in a measurement, which takes about half a second. */
const PAGES = 400;

/** Measures pages in the middle of data of every size, the sizes in turn. */
export async function pageRows(
  servers: readonly GrownServer[],
  load: Load,
  rounds: number,
): Promise<PageRow[]> {
  const asked = await Promise.all(
    servers.flatMap((server) =>
      (["id", "popularity"] as const).map(async (order) => ({
        server,
        requests: middlePages(server.data, order, await server.middle(order)),
        row: { projects: server.projects, order, p50Ms: [], processorUs: [] } as PageRow,
      })),
    ),
  );
  for (let round = 0; round <= rounds; round++) {
    for (const { server, requests, row } of round % 2 === 0 ? asked : asked.toReversed()) {
      const { peer, data } = server;
      const task = { form: "json", url: peer.url, token: data.token, connections: 1 } as const;
      const before = threadsMs(peer.process.pid);
      const result = await load.run({ ...task, requests, seconds: 1, amount: PAGES });
      if (result.failed > 0) throw new Error(`pages by ${row.order} failed`);
      // The first round warms up.
      if (round === 0) continue;
      row.p50Ms.push(result.p50Ms);
      row.processorUs.push(((threadsMs(peer.process.pid) - before) * 1000) / PAGES);
      logFigures(`page by ${row.order} of ${row.projects}`, { "p50 ms": result.p50Ms });
    }
  }
  return asked.map(({ row }) => row);
}

/** Returns the ratios of the largest data's times to the smallest data's, for each order and round. */
export function pageRatios(rows: readonly PageRow[]): number[][] {
  return (["id", "popularity"] as const).map((order) => {
    const [smallest, ...larger] = rows.filter((row) => row.order === order);
    const largest = larger.at(-1);
    return (largest?.p50Ms ?? []).map((time, round) => time / (smallest?.p50Ms[round] ?? Number.NaN));
  });
}
