import { printable } from "../client/printable.ts";

/** Number of spaces between columns. */
const GAP = 2;

/** Minimum width of a shortened text column, in characters. */
const MIN_TEXT_WIDTH = 20;

/** Minimum width of the last text column, most often a name, if that keeps each row on one line. */
const MIN_LAST_WIDTH = 10;

/** Indentation of the lines that continue a row. */
const INDENT = 4;

/** A column of ids or dates is never shortened: people copy ids, and a part of a date misleads. */
const WHOLE = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}|\d{4}-\d\d-\d\d/;

/**
 * Returns rows as aligned columns under a heading; cuts each value to its first line. Shortens long columns if they
 * do not fit; if that is not enough, each row continues on indented lines.
 * @param headings names of the columns
 * @param maxWidth width of the terminal in characters; Infinity shortens nothing
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  maxWidth = Number.POSITIVE_INFINITY,
): string {
  const lines = [
    headings,
    ...rows.map((row) => row.map((value) => printable(value).replace(/[\n\t].*/s, ""))),
  ];
  const columns = headings.map((_, index) => {
    const values = lines.map((line) => line[index] ?? "");
    return {
      width: Math.max(...values.map(lengthOf)),
      isWhole: index === 0 || values.some((it) => WHOLE.test(it)),
    };
  });
  const widths = shortened(columns, maxWidth);
  const groups = fold(widths, maxWidth);
  return lines.map((line) => groups.map((group) => lineOf(line, widths, group)).join("")).join("");
}

type Column = { readonly width: number; readonly isWhole: boolean };

/** Returns the widths of the columns; shortens the longest texts first if they do not fit. */
function shortened(columns: readonly Column[], maxWidth: number): number[] {
  const widths = columns.map(({ width }) => width);
  for (let excess = totalOf(widths) - maxWidth; excess > 0; excess--) {
    const texts = columns.map(({ isWhole }, index) => (isWhole ? 0 : (widths[index] ?? 0)));
    const longest = Math.max(...texts);
    if (longest <= MIN_TEXT_WIDTH) break;
    widths[texts.indexOf(longest)] = longest - 1;
  }
  if (totalOf(widths) <= maxWidth) return widths;
  const last = columns.findLastIndex(({ isWhole }) => !isWhole);
  const lastWidth = (widths[last] ?? 0) - (totalOf(widths) - maxWidth);
  if (lastWidth >= MIN_LAST_WIDTH) return widths.with(last, lastWidth);
  // When rows take several lines, a text gets its whole line.
  return columns.map(({ width, isWhole }) => (isWhole ? width : Math.min(width, maxWidth - INDENT)));
}

/** Returns the columns of each line of a row. */
function fold(widths: readonly number[], maxWidth: number): number[][] {
  const groups: number[][] = [[]];
  let used = -GAP;
  for (const [column, width] of widths.entries()) {
    if (column > 0 && used + GAP + width > maxWidth) {
      groups.push([]);
      used = INDENT - GAP;
    }
    groups.at(-1)?.push(column);
    used += GAP + width;
  }
  return groups;
}

/** Returns one line of a row; omits an empty continuation. */
function lineOf(row: readonly string[], widths: readonly number[], columns: readonly number[]): string {
  const values = columns.map((column) => {
    const width = widths[column] ?? 0;
    const value = fitted(row[column] ?? "", width);
    return value + " ".repeat(width - lengthOf(value));
  });
  const line = values.join(" ".repeat(GAP)).trimEnd();
  if (columns[0] === 0) return `${line}\n`;
  return line === "" ? "" : `${" ".repeat(INDENT)}${line}\n`;
}

function fitted(value: string, width: number): string {
  return lengthOf(value) <= width ? value : `${[...value].slice(0, width - 1).join("")}…`;
}

function lengthOf(text: string): number {
  return [...text].length;
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width + GAP, -GAP);
}
