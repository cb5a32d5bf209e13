/** The value that so many of a hundred are not above. */
export function percentile(values: readonly number[], hundredth: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * hundredth) / 100) - 1)] ?? Number.NaN;
}

/** Jain's index of fairness: 1 when all shares are alike, 1/n when one of n has all. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return sum ** 2 / (shares.length * squares);
}

/** Numbers of a round by their names, which say the unit. */
export type Figures = Readonly<Record<string, number>>;

/**
 * A table of medians, with the least and the most of the rounds.
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

/** Three digits that count. */
export function shown(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
