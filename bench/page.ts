import type { Case } from "./cases.ts";
import { shown } from "./figures.ts";
import type { GrowthBar } from "./growth/growth-page.ts";
import { median, type Ratio, ratioRounds } from "./ratios.ts";
import { type Measured, type Measures, measuresKey } from "./rounds.ts";

/** Returns the table of ratios: medians of the rounds, their spread, and whether the bound is met. */
export function ratioTable(
  ratios: readonly Ratio[],
  measures: Measures,
  bars: readonly GrowthBar[],
): string[] {
  const rows = ratios.flatMap((each) => {
    const rounds = ratioRounds(each, measures);
    if (rounds.length === 0) return [];
    const measure = each.measure === "processor" ? "processor a request" : "requests a second";
    const value = median(rounds);
    const cells = [
      `${each.name}`,
      `${each.what}; ${measure}`,
      ...spread(rounds),
      each.atLeast,
      each.aim ?? "",
    ];
    return [
      `| ${cells.join(" | ")} | ${verdict(value >= each.atLeast, each.aim !== undefined && value >= each.aim)} |`,
    ];
  });
  const grown = bars.map(({ name, what, rounds, atMost, aim }) => {
    const value = median(rounds);
    const cells = [name, what, ...spread(rounds), `within ${atMost}`, aim ?? ""];
    return `| ${cells.join(" | ")} | ${verdict(value <= atMost, aim !== undefined && value <= aim)} |`;
  });
  return [
    "| name | what, and by which measure | median | least | most | at least | aim | |",
    "|---|---|---:|---:|---:|---:|---:|---|",
    ...rows,
    ...grown,
  ];
}

/** Returns a word for a table that says whether a bound is met. */
export function verdict(isMet: boolean, isAim: boolean): string {
  if (isAim) return "aim met";
  return isMet ? "met" : "**missed**";
}

/** Returns a table for each case, with its peers in the order of the case. */
export function caseTables(
  cases: readonly Pick<Case, "name" | "title" | "peers" | "connections">[],
  measures: Measures,
): string[] {
  const hasDatabase = [...measures.values()].some(([first]) => first?.databaseUs !== undefined);
  const database = hasDatabase ? " of the database, µs |" : "";
  return cases.flatMap(({ name, title, peers, connections }) => {
    const rows = peers.flatMap((peer) => {
      const rounds = measures.get(measuresKey(name, peer)) ?? [];
      if (rounds.length === 0) return [];
      const of = (field: keyof Measured) => rounds.map((each) => each[field] ?? Number.NaN);
      const cells = [
        ranged(of("processorUs")),
        ...(hasDatabase ? [ranged(of("databaseUs"))] : []),
        ranged(of("perSecond")),
        shown(median(of("p50Ms"))),
        shown(median(of("p99Ms"))),
      ];
      return [`| ${peer} | ${cells.join(" | ")} |`];
    });
    if (rows.length === 0) return [];
    return [
      `### ${name}: ${title}`,
      "",
      `${connections === 1 ? "1 connection" : `${connections} connections`}. Medians, with the least and the most of the rounds.`,
      "",
      `| | processor a request, µs |${database} requests a second | p50, ms | p99, ms |`,
      `|---|---:|${hasDatabase ? "---:|" : ""}---:|---:|---:|`,
      ...rows,
      "",
    ];
  });
}

function spread(values: readonly number[]): string[] {
  return [median(values), Math.min(...values), Math.max(...values)].map(shown);
}

function ranged(values: readonly number[]): string {
  const [middle, least, most] = spread(values);
  return values.length > 1 ? `${middle} (${least} to ${most})` : `${middle}`;
}
