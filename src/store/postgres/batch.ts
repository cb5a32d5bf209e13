import type pg from "pg";
import { type Column, columnsOf, DriverQuery, rowOf } from "./columns.ts";
import { isBroken } from "./storage-problem.ts";

/** The result of a statement of a batch. */
export interface BatchAnswer {
  readonly rows: Readonly<Record<string, unknown>>[];
  /** Number of rows that were found or changed. */
  readonly rowCount: number | null;
  /** Such as `UPDATE`. */
  readonly command: string;
}

/** The Sync message, which asks for the answer: its letter, and its length without that letter. */
const SYNC = Buffer.from([83, 0, 0, 0, 4]);

interface Statement {
  readonly query: pg.QueryConfig;
  readonly resolve: (answer: BatchAnswer) => void;
  readonly reject: (error: Error) => void;
  /** Called instead of `reject` when the engine skipped the statement because an earlier one failed. */
  readonly skip?: (() => void) | undefined;
}

/** A field of the connection that the driver's declarations omit: the texts of statements in flight, by name. */
interface Submitted {
  readonly submittedNamedStatements: Record<string, string>;
}

/**
 * Statements that the engine executes in order and answers together, after the last of them. When one fails, the
 * engine skips the rest, which fail with the same error unless they have a `skip` function. The columns of a prepared
 * statement are described when it first runs on the connection, and not again: a statement whose columns have changed
 * fails.
 */
export class Batch extends DriverQuery {
  readonly #known: Map<string, readonly Column[]>;
  /**
   * Statements without an answer, the next one first. A statement is released once it has its answer: a batch outlives
   * collections of the young generation, and would otherwise move the rows it references to the old generation with
   * it.
   */
  #statements: Statement[] = [];
  #connection: (pg.Connection & Submitted) | undefined;
  #columns: readonly Column[] = [];
  #rows: Readonly<Record<string, unknown>>[] = [];

  /** @param known the columns of the statements that the connection has prepared */
  constructor(known: Map<string, readonly Column[]>) {
    super("");
    this.#known = known;
    // The driver wraps the callback in its own, to know when the answer has arrived.
    this.callback = () => {};
  }

  /** Adds a statement. @param skip called instead of `reject` when the engine skipped it */
  add(
    query: pg.QueryConfig,
    resolve: Statement["resolve"],
    reject: Statement["reject"],
    skip?: Statement["skip"],
  ): void {
    this.#statements.push({ query, resolve, reject, skip });
  }

  override submit(connection: pg.Connection): null {
    this.#connection = connection as pg.Connection & Submitted;
    const messages = Messages.of(connection);
    this.#statements = this.#statements.filter(({ query, reject }) => {
      [this.name, this.text, this.values] = [query.name, query.text, query.values ?? []];
      const failure = messages.add(this, this.#known.has(query.name ?? ""));
      if (!failure) return true;
      this.#forget(query);
      reject(failure);
      return false;
    });
    // Sent as one buffer: many small writes are much slower in the stream, and two buffers cost two system calls.
    connection.stream.write(messages.take());
    this.#expectNext();
    return null;
  }

  /** Makes a statement be parsed when it is sent again, unless the engine has parsed it. */
  #forget({ name }: pg.QueryConfig): void {
    if (name !== undefined) delete this.#connection?.submittedNamedStatements[name];
  }

  /** Waits for the answer of the next statement. The driver asks for its name and text when the engine has parsed it. */
  #expectNext(): void {
    const { name, text = "" } = this.#statements[0]?.query ?? {};
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
    const statement = this.#statements.shift();
    this.#expectNext();
    statement?.resolve(answer);
  }

  override handleReadyForQuery(): void {
    this.callback(null);
  }

  override handleError(error: Error): void {
    const unanswered = this.#statements;
    this.#statements = [];
    this.#expectNext();
    const isLost = isBroken(error);
    // Done for all of them before one is sent again and parsed again.
    for (const { query } of unanswered) this.#forget(query);
    for (const [index, { reject, skip }] of unanswered.entries()) {
      if (skip && index > 0 && !isLost) skip();
      else reject(error);
    }
    this.callback(error);
  }
}

/** Collects the messages that the driver writes for the statements of a batch. */
class Messages {
  static readonly #known = new WeakMap<pg.Connection, Messages>();
  readonly #collecting: pg.Connection;
  #pieces: Uint8Array[] = [];
  #isDescribed = false;
  #failure: Error | undefined;

  /** Returns those of a connection, the same at each call. */
  static of(connection: pg.Connection): Messages {
    let messages = Messages.#known.get(connection);
    if (!messages) {
      messages = new Messages(connection);
      Messages.#known.set(connection, messages);
    }
    return messages;
  }

  constructor(connection: pg.Connection) {
    this.#collecting = Object.assign(Object.create(connection), {
      stream: { writable: true, write: (piece: Uint8Array) => this.#pieces.push(piece) },
      bind: (config: pg.BindConfig) => {
        try {
          connection.bind.call(this.#collecting, config, true);
        } catch (error) {
          this.#failure = error as Error;
        }
      },
      describe: (message: pg.MessageConfig) => {
        if (!this.#isDescribed) connection.describe.call(this.#collecting, message, true);
      },
      // One for all statements.
      sync: () => {},
    });
  }

  /**
   * Adds the messages of a statement.
   * @param isDescribed whether its columns are known
   * @returns why the driver cannot send its values; undefined if it can
   */
  add(statement: DriverQuery, isDescribed: boolean): Error | undefined {
    const before = this.#pieces.length;
    this.#isDescribed = isDescribed;
    this.#failure = undefined;
    statement.prepare(this.#collecting);
    if (this.#failure) this.#pieces.length = before;
    return this.#failure;
  }

  /** Returns the messages in one buffer, with the one that asks for the answer, and forgets them. */
  take(): Buffer {
    const pieces = [...this.#pieces, SYNC];
    this.#pieces = [];
    return Buffer.concat(pieces);
  }
}
