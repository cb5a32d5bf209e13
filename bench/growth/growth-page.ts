import { shown } from "../figures.ts";
import { median } from "../ratios.ts";
import type { Growth } from "./growth.ts";
import { type PageRow, pageRatios } from "./page-times.ts";
import type { SearchRow } from "./search-times.ts";

/** A bound that a value must stay below as data grows. */
export interface GrowthBar {
  /** The name in the table of ratios; empty if it is not in the table. */
  readonly name: string;
  readonly what: string;
  readonly rounds: readonly number[];
  readonly atMost: number;
  readonly aim?: number;
}

/** Returns the p99 of the worst kind of search in the largest data, round by round. */
export function worstSearch(searches: readonly SearchRow[], isMeant = (_: SearchRow) => true): number[] {
  const most = searches.at(-1)?.projects;
  return searches
    .filter((row) => row.projects === most && isMeant(row))
    .map(({ results }) => results.map((result) => result.p99Ms))
    .reduce((worst, each) => (median(each) > median(worst) ? each : worst));
}

/** Returns the bound for a page in the middle. */
export function pageBar(pages: readonly PageRow[]): GrowthBar {
  const byRound = pageRatios(pages);
  const worse = byRound[0]?.map((_, round) => Math.max(...byRound.map((each) => each[round] ?? Number.NaN)));
  return {
    name: "page-1m/page-1k",
    what: "a page in the middle: time in the most projects by that in the fewest, the worse order",
    rounds: worse ?? [],
    atMost: 2,
    aim: 1.2,
  };
}

/** Returns the bounds, in the order of the table. */
export function growthBars({ pages, searches, searching, writing, anonymousMb }: Growth): GrowthBar[] {
  return [
    pageBar(pages),
    {
      name: "",
      what: "search, p99 ms, the worst kind",
      rounds: worstSearch(searches, ({ mostMs }) => mostMs >= 50),
      atMost: 50,
      aim: 10,
    },
    {
      name: "",
      what: "search under 1,000 matches, p99 ms, the worst kind",
      rounds: worstSearch(searches, ({ mostMs }) => mostMs < 50),
      atMost: 15,
      aim: 10,
    },
    {
      name: "",
      what: "the longest stall of another request behind searches, ms",
      rounds: searching.loaded.map(({ longestMs }) => longestMs),
      atMost: 20,
      aim: 5,
    },
    {
      name: "",
      what: "reads under a load of writes: p99 by that of reads alone",
      rounds: writing.loaded.map(({ p99Ms }, round) => p99Ms / (writing.alone[round]?.p99Ms ?? Number.NaN)),
      atMost: 3,
      aim: 1.5,
    },
    { name: "", what: "RssAnon after all of it, MB", rounds: [anonymousMb], atMost: 300, aim: 150 },
  ];
}

/** Returns the tables of the measurements as data grows. */
export function growthTables({ sizes, pages, searches, searching, writing }: Growth): string[] {
  const rows = [
    ["alone, before the searches", searching.alone, undefined],
    ["during searches", searching.loaded, searching.otherPerSecond],
    ["alone, before the writes", writing.alone, undefined],
    ["during writes", writing.loaded, writing.otherPerSecond],
  ] as const;
  const rowLines = rows.map(([title, results, others]) =>
    line(
      title,
      shown(median(results.map(({ p50Ms }) => p50Ms))),
      shown(median(results.map(({ p99Ms }) => p99Ms))),
      shown(median(results.map(({ longestMs }) => longestMs))),
      shown(Math.max(...results.map(({ longestMs }) => longestMs))),
      others ? shown(median(others)) : "",
    ),
  );
  return [
    ...pageAndSearchTables({ sizes, pages, searches }),
    `### GetProject at a fixed pace, with ${count(sizes.projects.at(-1) ?? 0)} projects`,
    "",
    "250 a second, each counted from the moment at which it was due. The searches are all of the kinds above, one after the other without a pause; the writes are 100 durable creates a second.",
    "",
    "| | p50, ms | p99, ms | longest, median of rounds, ms | longest of all, ms | others a second |",
    "|---|---:|---:|---:|---:|---:|",
    ...rowLines,
    "",
  ];
}

/** Returns the tables of pages and searches as data grows. */
export function pageAndSearchTables({
  sizes,
  pages,
  searches,
}: Pick<Growth, "sizes" | "pages" | "searches">): string[] {
  const pageLines = pages.map(({ projects, order, p50Ms, processorUs }) =>
    line(count(projects), `by ${order}`, shown(median(p50Ms)), shown(median(processorUs))),
  );
  const searchLines = searches.map(({ projects, title, results, firstMs }) =>
    line(
      count(projects),
      title,
      shown(median(results.map(({ p50Ms }) => p50Ms))),
      shown(median(results.map(({ p99Ms }) => p99Ms))),
      shown(Math.max(...results.map(({ longestMs }) => longestMs))),
      shown(median(firstMs)),
    ),
  );
  return [
    `Data of ${sizes.projects.map(count).join(", ")} projects: 95 of 100 in one organization, which is the one that asks, the others in many small ones.`,
    "",
    "### A page of 25 in the middle, one connection",
    "",
    "| projects | order | p50, ms | processor a request, µs |",
    "|---:|---|---:|---:|",
    ...pageLines,
    "",
    "### Searches, one connection",
    "",
    "Each search is done once before it counts in a round: what nobody has asked for lately may have to come from the disk, which is the last column.",
    "",
    "| projects | kind | p50, ms | p99, ms | longest of all, ms | longest of the first, median of rounds, ms |",
    "|---:|---|---:|---:|---:|---:|",
    ...searchLines,
    "",
  ];
}

function line(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function count(value: number): string {
  return value.toLocaleString("en");
}
