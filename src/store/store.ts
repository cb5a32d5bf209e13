import type { Kysely } from "kysely";
import type { JsonSource } from "../domain/diff.ts";
import type { EventFacts } from "../domain/event-facts.ts";
import type { Schema } from "./schema.ts";
import type { SearchName, SearchParameters, SearchResult } from "./search.ts";
import type { WriteBackRow } from "./write-back-row.ts";

/** Whose rows a query may see. Every function over tenant rows takes one. */
export interface Scope {
  readonly organizationId: string;
  /** Who asks, where that is known: searches of an organization take turns by it. */
  readonly subject?: { readonly id: string };
}

/** Who changes something: a principal of the contract, the operator, or the system itself. */
export interface Actor {
  /** Id of the principal; for the operator `operator:` and the operating system's user, and `system` for the system. */
  readonly id: string;
  /** Principal by number; 0 for the operator and the system. */
  readonly principal: number;
}

/** Recorded under the name of the operating system's user who runs the process, where the store knows it. */
export const OPERATOR: Actor = { id: "operator", principal: 0 };
export const SYSTEM: Actor = { id: "system", principal: 0 };

/** One changed resource, as the audit log and the event feed tell it. */
export interface Change {
  /** Null for what concerns the installation: it has a chain of its own and no events. */
  readonly organizationId: string | null;
  readonly type: ResourceType;
  readonly id: string;
  /** A read is recorded only where the contract says so: of a credential. It leaves no event. */
  readonly kind: "created" | "updated" | "deleted" | "read";
  /** The resource's body before and after, as text or as JSON that nobody changes; absent where there was none. */
  readonly before?: JsonSource;
  readonly after?: JsonSource;
  readonly reason?: string;
  /** What the event says of the resource, where its body does not. */
  readonly facts?: Partial<EventFacts>;
}

export type ResourceType =
  | "account"
  | "host_token"
  | "organization_policies"
  | "security_policy"
  | "service_account"
  | "subscription"
  | "organization"
  | "member"
  | "personal_token"
  | "service_account_token"
  /** A token of a runner or an environment; in old rows any token. */
  | "token"
  | "runner"
  | "environment_class"
  | "project"
  | "environment"
  | "workflow"
  | "workflow_execution"
  | "workflow_action"
  | "prebuild"
  | "agent_execution"
  | "agent";

/** What a write may use: its own transaction, the one instant it happens at, and the record. */
export interface WriteTransaction {
  readonly db: Kysely<Schema>;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  /** What an organization may store at most; Infinity without a bound. Who grows what is stored holds it against this. */
  readonly quotaBytes: number;
  newId(): string;
  /**
   * Called by every function of store/ that changes a resource. The rows of the
   * audit log and the event feed are written at the end of the commit: a write
   * sees neither its own nor those of the writes that it shares it with.
   */
  record(change: Change): void;
  /**
   * Wakes those who wait for a resource when the write is committed, although
   * nothing of it is recorded; what is recorded wakes them anyway.
   */
  touch(id: string): void;
  /** Enters a text in the index of search texts, under a row of its own, when the write is committed. */
  enterText(row: number, text: string): void;
  /**
   * Removes an organization and every row that is its own, in whichever table, without a record.
   *
   * @param onTable told of each table that holds such rows, before they are removed
   */
  deleteOwnedRows(organizationId: string, onTable: (table: string, rows: number) => void): Promise<void>;
  /** The value of a held row as the last change left it. A write never moves one on twice at the same time. */
  readHeld<K, V>(row: WriteBackRow<K, V>, key: K): Promise<V>;
  /** Moves a held row on; it is written when the write is committed. */
  setHeld<K, V>(row: WriteBackRow<K, V>, key: K, value: V): void;
  /**
   * Does a part of the write that may fail: when `part` throws, nothing of it
   * is left, neither rows nor record, and whoever catches it may go on.
   *
   * @throws what `part` throws; StoreUnavailable when the engine failed, as with
   *   a full disk: it says nothing of the part, and ends the write
   */
  attempt<T>(part: () => Promise<T>): Promise<T>;
}

export interface WriteOptions {
  /** A write whose signal is aborted before its turn comes does not begin. */
  readonly signal?: AbortSignal;
}

export interface Store {
  /** Reads of rows that are committed and on the disk for good. It cannot write. */
  readonly reader: Kysely<Schema>;
  /**
   * Does one of SEARCHES beside this thread, which goes on meanwhile. It sees
   * what is committed when it is called. Organizations take turns, and in each its callers; one that
   * takes long lets others go first.
   *
   * @throws DomainError VALUE_UNUSABLE when it takes too long; StoreUnavailable
   *   when too many wait; the signal's reason once that is aborted
   */
  search<N extends SearchName>(
    name: N,
    scope: Scope,
    parameters: SearchParameters<N>,
    signal?: AbortSignal,
  ): Promise<SearchResult<N>>;
  /** A reader of the scope's rows each of whose queries is a search: for lists that look for a text. */
  searcher(scope: Scope): Kysely<Schema>;
  /** A reader of the scope's rows for other lists: a query that tests many rows goes on as a search. */
  lister(scope: Scope): Kysely<Schema>;
  /**
   * The only way to change a resource. Everything that `fn` does, the audit and
   * event rows of what it recorded included, is durable when the promise
   * resolves, or nothing of it happened when it rejects. Inside `fn` only
   * queries of its own transaction may be awaited. One that goes on for long lets
   * reads have their turn between two queries; other writes wait for its end.
   *
   * @throws what `fn` throws; StoreUnavailable when the database is busy or
   *   cannot commit
   */
  write<T>(
    actor: Actor,
    operation: string,
    fn: (tx: WriteTransaction) => Promise<T>,
    options?: WriteOptions,
  ): Promise<T>;
  /**
   * Bookkeeping that changes no resource and leaves no audit row; it can touch
   * only the columns of {@link NotableColumns}.
   */
  note<T extends keyof NotableColumns>(
    table: T,
    id: string,
    values: { [C in NotableColumns[T]]?: Schema[T][C & keyof Schema[T]] },
  ): Promise<void>;
  /**
   * Several notes that must hold together, such as a score and what it counted.
   * A function reads what they depend on in the transaction that writes them.
   */
  touchAll(
    notes: readonly BookkeepingUpdate[] | ((db: Kysely<Schema>) => Promise<readonly BookkeepingUpdate[]>),
  ): Promise<void>;
  /**
   * Returns why the database took no change the last time, in words for the
   * operator; undefined once it has taken one.
   */
  problem(): string | undefined;
  /** Tries a change of nothing, while there is a problem; resolves however it goes. */
  probe(): Promise<void>;
  /**
   * Calls `listener` after each commit of this process, and within a second after
   * those of others. Returns what ends it.
   */
  onCommit(listener: () => void): () => void;
  /**
   * The same, only for commits of this process that hold a change of the resource,
   * recorded or not, and for all of others: nobody knows what those changed. Topics
   * of src/store/topics.ts are waited for in the same way.
   */
  onChange(id: string, listener: () => void): () => void;
  close(): Promise<void>;
}

/** The columns that `note` can touch. */
export interface NotableColumns {
  token: "last_used_at" | "hash" | "hmac_key_id";
  project: "popularity";
  environment: "counted";
  runner: "seen_at";
}

export const NOTABLE_COLUMNS: { readonly [T in keyof NotableColumns]: readonly NotableColumns[T][] } = {
  token: ["last_used_at", "hash", "hmac_key_id"],
  project: ["popularity"],
  environment: ["counted"],
  runner: ["seen_at"],
};

export interface BookkeepingUpdate {
  readonly table: keyof NotableColumns;
  readonly id: string;
  readonly values: Readonly<Record<string, number | string | Uint8Array | null>>;
}

/** The database is busy, full or closing; the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** Why the database takes no changes, in words for the operator; undefined while it is only busy. */
  readonly problem: string | undefined;

  constructor(message: string, { problem, cause }: { problem?: string | undefined; cause?: unknown } = {}) {
    super(message, { cause });
    this.problem = problem;
  }
}
