import type { AgentExecution_Status_OutputValue as OutputValue } from "#gen/service/v1/agent_pb.js";

/** The outputs of one action. */
export interface OutputRow {
  readonly actionId: string;
  readonly name: string;
  readonly values: Readonly<Record<string, OutputValue>>;
}

/** Returns a value as text; empty for none. */
export function valueText(value: OutputValue | undefined): string {
  return value?.value.case === undefined ? "" : String(value.value.value);
}

/** Compares text in natural order: the tenth comes after the ninth. */
const { compare: compared } = new Intl.Collator(undefined, { numeric: true });

/** Returns rows sorted by a column, numbers by size. Rows without a value come last in both directions. */
export function sortedRows(
  rows: readonly OutputRow[],
  column: string,
  isDescending: boolean,
): readonly OutputRow[] {
  const sign = isDescending ? -1 : 1;
  return rows.toSorted((one, other) => {
    if (column === "") return sign * compared(one.name, other.name);
    const [a, b] = [one.values[column]?.value, other.values[column]?.value];
    if (a?.case === undefined || b?.case === undefined) {
      return Number(a?.case === undefined) - Number(b?.case === undefined);
    }
    if (typeof a.value === "string" || typeof b.value === "string") {
      return sign * compared(String(a.value), String(b.value));
    }
    return sign * (a.value < b.value ? -1 : Number(a.value > b.value));
  });
}

/** Returns the rows as comma-separated values. */
export function csvOf(rows: readonly OutputRow[], columns: readonly string[]): string {
  const lines = rows.map(({ actionId, name, values }) => [
    actionId,
    name,
    ...columns.map((column) => {
      const text = valueText(values[column]);
      return values[column]?.value.case === "stringValue" ? harmless(text) : text;
    }),
  ]);
  const head = ["action_id", "action", ...columns];
  return [head, ...lines.map(([id = "", name = "", ...rest]) => [id, harmless(name), ...rest])]
    .map((cells) => `${cells.map(quoted).join(",")}\r\n`)
    .join("");
}

/** In some locales, spreadsheets also end a cell at a semicolon or a tab. */
const quoted = (text: string): string =>
  /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** Spreadsheets run text that begins like this as a formula. */
const harmless = (text: string): string => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
