/** Removes characters that would control the terminal, or reorder and hide text. */
export function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])[\p{Cc}\u{202d}\u{202e}\u{e0000}-\u{e007f}]/gu, "\u{fffd}");
}

/**
 * Returns rows as aligned columns under a heading, a line each; values are cut to one line.
 * @param headings names of the columns
 */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [
    headings,
    ...rows.map((row) => row.map((value) => printable(value).replace(/[\n\t].*/s, ""))),
  ];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map(
      (line) =>
        `${line
          .map((value, column) => value.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}
