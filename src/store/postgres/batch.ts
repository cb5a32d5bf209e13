import type pg from "pg";
import { type Column, columnsOf, DriverQuery, rowOf } from "./prepared-read.ts";

/** The result of a statement of a batch. */
export interface BatchAnswer {
  readonly rows: Readonly<Record<string, unknown>>[];
  /** Number of rows that were found or changed. */
  readonly rowCount: number | null;
  /** Such as `UPDATE`. */
  readonly command: string;
}

interface Statement {
  readonly query: pg.QueryConfig;
  readonly resolve: (answer: BatchAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** A list of the connection that its declarations leave out: the texts of statements on their way, by their names. */
interface Submitted {
  readonly submittedNamedStatements: Record<string, string>;
}

/**
 * Statements that the engine carries out in their order and answers in one piece, behind the last of them. Where one
 * fails, the engine skips those after it, and they fail with the same error. The columns of a prepared statement are
 * described as it first runs on the connection, and not again: one whose columns have changed fails.
 */
export class Batch extends DriverQuery {
  readonly #known: Map<string, readonly Column[]>;
  #statements: readonly Statement[] = [];
  #connection: (pg.Connection & Submitted) | undefined;
  /** Place of the statement whose answer comes next. */
  #place = 0;
  #columns: readonly Column[] = [];
  #rows: Readonly<Record<string, unknown>>[] = [];

  /** @param known the columns of the statements that the connection has prepared */
  constructor(known: Map<string, readonly Column[]>) {
    super("");
    this.#known = known;
    // The driver puts one of its own around it, to know when the answer is there.
    this.callback = () => {};
  }

  add(query: pg.QueryConfig, resolve: Statement["resolve"], reject: Statement["reject"]): void {
    this.#statements = [...this.#statements, { query, resolve, reject }];
  }

  override submit(connection: pg.Connection): null {
    this.#connection = connection as pg.Connection & Submitted;
    const pieces: Uint8Array[] = [];
    this.#statements = this.#statements.filter(({ query, reject }) => {
      const messages = this.#messagesOf(connection, query);
      if (messages instanceof Error) {
        this.#forget(query);
        reject(messages);
        return false;
      }
      pieces.push(...messages);
      return true;
    });
    // In one buffer: the stream takes much longer for many small ones.
    connection.stream.write(Buffer.concat(pieces));
    connection.sync();
    this.#expect(0);
    return null;
  }

  /** Returns the messages of a statement, or why the driver cannot send its values. */
  #messagesOf(connection: pg.Connection, { name, text, values }: pg.QueryConfig): Uint8Array[] | Error {
    const pieces: Uint8Array[] = [];
    let failure: Error | undefined;
    const write = (piece: Uint8Array) => pieces.push(piece);
    const collecting: pg.Connection = Object.assign(Object.create(connection), {
      stream: { writable: true, write },
      bind(config: pg.BindConfig) {
        try {
          connection.bind.call(collecting, config, true);
        } catch (error) {
          failure = error as Error;
        }
      },
      sync() {},
      ...(this.#known.has(name ?? "") && { describe() {} }),
    });
    [this.name, this.text, this.values] = [name, text, values ?? []];
    this.prepare(collecting);
    return failure ?? pieces;
  }

  /** Lets a statement be parsed when it is sent again, unless the engine has parsed it. */
  #forget({ name }: pg.QueryConfig): void {
    if (name !== undefined) delete this.#connection?.submittedNamedStatements[name];
  }

  /** Waits for the answer of a statement. The driver asks for its name and text when the engine has parsed it. */
  #expect(place: number): void {
    this.#place = place;
    const { name, text = "" } = this.#statements[place]?.query ?? {};
    [this.name, this.text] = [name, text];
    this.#columns = (name !== undefined && this.#known.get(name)) || [];
    this.#rows = [];
  }

  override handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = columnsOf(fields);
  }

  override handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.#rows.push(rowOf(this.#columns, fields));
  }

  override handleCommandComplete({ text }: { readonly text: string }): void {
    if (this.name !== undefined) this.#known.set(this.name, this.#columns);
    // Such as SELECT 3 and INSERT 0 1, but also SET CONSTRAINTS.
    const [, command = text, count] = /^(\w+) (?:\d+ )?(\d+)$/.exec(text) ?? [];
    const answer = { rows: this.#rows, rowCount: count === undefined ? null : Number(count), command };
    const statement = this.#statements[this.#place];
    this.#expect(this.#place + 1);
    statement?.resolve(answer);
  }

  override handleReadyForQuery(): void {
    this.callback(null);
  }

  override handleError(error: Error): void {
    const unanswered = this.#statements.slice(this.#place);
    this.#expect(this.#statements.length);
    for (const { query, reject } of unanswered) {
      this.#forget(query);
      reject(error);
    }
    this.callback(error);
  }
}
