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
  for (const [index, { name, parse }] of columns.entries()) {
    const text = fields[index] ?? null;
    row[name] = text === null ? null : parse(text);
  }
  return row;
}

/** The prepared statements of a connection. */
export class KnownStatements {
  readonly columns = new Map<string, readonly Column[]>();
  /** The connection, without the message that asks the engine for the columns. */
  readonly undescribed: pg.Connection;

  constructor(connection: pg.Connection) {
    this.undescribed = Object.assign(Object.create(connection), { describe: () => {} });
  }
}

/** The result of a read. */
export interface Answer {
  readonly rows: Readonly<Record<string, unknown>>[];
  readonly rowCount: number;
}

/**
 * A read of a connection that pipelines. The engine describes the columns of a prepared statement as it first runs on
 * the connection, and not again: a statement whose columns have changed fails.
 */
export class PreparedRead extends DriverQuery {
  readonly #statements: KnownStatements;
  readonly #rows: Readonly<Record<string, unknown>>[] = [];
  #columns: readonly Column[] = [];

  constructor(
    { name, text, values }: pg.QueryConfig,
    statements: KnownStatements,
    resolve: (answer: Answer) => void,
    reject: (error: Error) => void,
  ) {
    super(text, values);
    this.name = name;
    this.callback = (error) => {
      if (error) reject(error);
      else resolve({ rows: this.#rows, rowCount: this.#rows.length });
    };
    this.#statements = statements;
  }

  override prepare(connection: pg.Connection): void {
    const known = this.name && this.#statements.columns.get(this.name);
    if (known) this.#columns = known;
    super.prepare(known ? this.#statements.undescribed : connection);
  }

  override handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = columnsOf(fields);
    if (this.name) this.#statements.columns.set(this.name, this.#columns);
  }

  override handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.#rows.push(rowOf(this.#columns, fields));
  }

  override handleCommandComplete(): void {}
}

/** Names of statements by their text: a connection parses each once. */
const statementNames = new Map<string, string>();

/** Counts the times at which statements got new names, since the columns of a table had changed. */
let namings = 0;

/** Maximum number of statements that a connection keeps prepared; texts past it are parsed each time. */
const MAX_STATEMENTS = 2_000;

/** Returns the name under which connections prepare a text; undefined past the maximum. */
export function statementName(text: string): string | undefined {
  const known = statementNames.get(text);
  if (known !== undefined || statementNames.size >= MAX_STATEMENTS) return known;
  const name = `s${namings}_${statementNames.size}`;
  statementNames.set(text, name);
  return name;
}

/** Gives statements new names, so that each connection parses them again. @param stale the name of one that is stale */
export function renameStatements(stale: string | undefined): void {
  if (!stale?.startsWith(`s${namings}_`)) return;
  statementNames.clear();
  namings += 1;
}
