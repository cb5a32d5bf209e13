import pg from "pg";
import { fromStored } from "./text.ts";

/** Whole numbers arrive as numbers: none of the rows exceeds 2^53. Sums of them are `numeric`. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  [pg.types.builtins.INT8]: Number,
  [pg.types.builtins.NUMERIC]: Number,
  [pg.types.builtins.TEXT]: fromStored,
};

/** The columns of a result, with their parsers. */
export const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    PARSERS[oid] ?? pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** The methods of a query that the driver calls as its answer arrives; its declarations leave them out. */
export interface DriverQuery extends pg.Submittable {
  name: string | undefined;
  text: string;
  values: readonly unknown[];
  callback: (error: Error | null | undefined) => void;
  submit(connection: pg.Connection): Error | null;
  prepare(connection: pg.Connection): void;
  handleRowDescription(message: { readonly fields: readonly pg.FieldDef[] }): void;
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void;
  handleCommandComplete(message: { readonly text: string }): void;
  handleReadyForQuery(connection: pg.Connection): void;
  handleError(error: Error, connection: pg.Connection): void;
}

export const DriverQuery = pg.Query as unknown as new (
  text: string,
  values?: readonly unknown[],
) => DriverQuery;

/** A column of an answer. */
export interface Column {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

/** Returns the columns that the engine has described. */
export const columnsOf = (fields: readonly pg.FieldDef[]): Column[] =>
  fields.map(({ name, dataTypeID }) => ({ name, parse: TYPES.getTypeParser(dataTypeID, "text") }));

/** Returns a row by its columns. */
export function rowOf(
  columns: readonly Column[],
  fields: readonly (string | null)[],
): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  let index = 0;
  for (const { name, parse } of columns) {
    const text = fields[index++] ?? null;
    row[name] = text === null ? null : parse(text);
  }
  return row;
}
