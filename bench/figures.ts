/** Returns a percentile of the values. */
export function percentile(values: readonly number[], hundredth: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * hundredth) / 100) - 1)] ?? Number.NaN;
}

/** Returns Jain's fairness index: 1 when all shares are equal, 1/n when one of n has everything. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return sum ** 2 / (shares.length * squares);
}

/** The figures of a round by name. The names contain the unit. */
export type Figures = Readonly<Record<string, number>>;

/**
 * Returns a table of medians, with the minimum and maximum of the rounds.
 *
 * @param before the figures of an earlier run, shown next to them
 */
export function table(rounds: readonly Figures[], before?: Figures): string[] {
  const names = Object.keys(rounds[0] ?? {});
  return [
    `| |${before ? " before |" : ""} median | least | most |`,
    `|---|${before ? "---:|" : ""}---:|---:|---:|`,
    ...names.map((name) => {
      const values = rounds.map((figures) => figures[name] ?? Number.NaN);
      const cells = [percentile(values, 50), Math.min(...values), Math.max(...values)].map(shown);
      const earlier = before?.[name];
      if (before) cells.unshift(earlier === undefined ? "" : shown(earlier));
      return `| ${name} | ${cells.join(" | ")} |`;
    }),
  ];
}

/** Formats a number with three significant digits. */
export function shown(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
