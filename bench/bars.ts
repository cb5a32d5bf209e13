import { type Figures, percentile, shown } from "./figures.ts";
import { verdict } from "./page.ts";

/** A bound on the median of a figure. */
export interface Bar {
  readonly what: string;
  /** The figure in each round. */
  readonly rounds: readonly number[];
  readonly before?: number | undefined;
  /** Lower bound on the median. */
  readonly atLeast?: number;
  /** Upper bound on the median. */
  readonly atMost?: number;
  readonly aim?: number;
}

/** Returns the figure of each round. */
export function roundsOf(rounds: readonly Figures[], name: string): number[] {
  return rounds.map((figures) => figures[name] ?? Number.NaN);
}

/** Returns the table of the bounds, and whether they are met. */
export function barTable(bars: readonly Bar[]): string[] {
  return [
    "| what | before | median | bar | aim | |",
    "|---|---:|---:|---:|---:|---|",
    ...bars.map(({ what, rounds, before, atLeast, atMost, aim }) => {
      const value = percentile(rounds, 50);
      const reaches = (bound: number | undefined) =>
        bound !== undefined && (atLeast === undefined ? value <= bound : value >= bound);
      const bar =
        atLeast === undefined ? `at most ${shown(atMost ?? Number.NaN)}` : `at least ${shown(atLeast)}`;
      const cells = [what, before === undefined ? "" : shown(before), shown(value), bar];
      const isMet = reaches(atLeast ?? atMost);
      return `| ${cells.join(" | ")} | ${aim === undefined ? "" : shown(aim)} | ${verdict(isMet, reaches(aim))} |`;
    }),
  ];
}
