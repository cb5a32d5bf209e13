import type { AnchorFacts, AuditAnchor } from "../domain/audit-anchor.ts";
import type { JsonSource } from "../domain/diff.ts";
import type { EventFacts } from "../domain/event-facts.ts";
import type { Outcome, StoreMeasures } from "../domain/measures.ts";
import type { TraceParent } from "../domain/trace/trace-context.ts";
import type { Others } from "./listeners.ts";
import type { Schema } from "./schema.ts";
import type { ProjectSearch } from "./search-index.ts";
import type { WriteBackRow } from "./write-back-row.ts";

/** Committed rows, or rows as a transaction sees them. Only functions of store/ can build a query from it. */
export interface Reader {
  /** A property of every query builder that builds nothing; it makes every builder assignable to a reader. */
  readonly isTransaction: boolean;
}

/** The organization whose rows a query may see. Every function over tenant rows takes one. */
export interface Scope {
  readonly organizationId: string;
  /** Subject of the caller, if known: the searches of an organization take turns by caller. */
  readonly subject?: { readonly id: string };
}

declare const found: unique symbol;

/**
 * The id of a row that a function of store/ found in the scope of its caller. Functions over data that belongs to the
 * row, which has no organization column, take it instead of a scope. Nothing outside of store/ can create one from a
 * text.
 */
export type Handle<Table extends keyof Schema> = string & { readonly [found]: Table };

/** A row or resource with the handle for its id. */
export type Found<Row extends { readonly id: string }, Table extends keyof Schema> = Row & {
  readonly id: Handle<Table>;
};

/** The author of a change: a principal of the contract, the operator, or the system itself. */
export interface Actor {
  /** Id of the principal; for the operator `operator:` with the operating system's user, for the system `system`. */
  readonly id: string;
  /** Principal by number; 0 for the operator and the system. */
  readonly principal: number;
}

/** The operator; recorded with the name of the user who runs the process, if the store knows it. */
export const OPERATOR: Actor = { id: "operator", principal: 0 };
export const SYSTEM: Actor = { id: "system", principal: 0 };

/** One changed resource, as the audit log and the event feed show it. */
export interface Change {
  /** Null for a change of the installation: it has its own chain and no events. */
  readonly organizationId: string | null;
  readonly type: ResourceType;
  readonly id: string;
  /** A read, recorded only where the contract requires it: of a credential. It creates no event. */
  readonly kind: "created" | "updated" | "deleted" | "read";
  /** The resource's body before and after, as text or read-only JSON; absent where there was none. */
  readonly before?: JsonSource;
  readonly after?: JsonSource;
  readonly reason?: string;
  /** Name for the audit log, such as `approval/denied`, where the operation of the write does not say what was done. */
  readonly operation?: string;
  /** Facts of the resource for the event that its body does not contain. */
  readonly facts?: Partial<EventFacts>;
  /** The author, where the trail must not name the author of the write, who is of another organization. */
  readonly actor?: Actor;
}

export type ResourceType =
  | "account"
  | "host_token"
  | `group${"" | "_membership"}`
  | "role_assignment"
  | "organization_policies"
  | "security_policy"
  | "service_account"
  | `${"" | "event_"}subscription`
  | "organization"
  | "member"
  | "personal_token"
  | "service_account_token"
  /** A token of a runner or an environment; in old rows, of any kind. */
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
  | "agent"
  | "approval"
  | "pull_request"
  /** Of a project; others name their scope. */
  | `${"" | "organization_" | "user_" | "service_account_"}secret`;

/** Rows, and the time of the check in milliseconds since 1970 UTC. */
export type Snapshot = Readonly<{ db: Reader; now: number }>;

/** The context of a write: its own transaction, its single timestamp, and its record. */
export interface WriteTransaction extends Snapshot {
  /** Lowest feature level of the servers that may use the data: see src/store/feature-level.ts. */
  readonly featureLevel: number;
  /** Maximum bytes that an organization may store; Infinity without a limit. Writes that store more check it. */
  readonly quotaBytes: number;
  newId(): string;
  /**
   * Records a change; called by every function of store/ that changes a resource. The rows of the audit log and the
   * event feed are written at the end of the commit: a write sees neither its own nor those of writes in the same
   * commit.
   */
  record(change: Change): void;
  /**
   * Wakes the listeners of a resource when the write is committed, although no change of it is recorded; a recorded
   * change always wakes them.
   */
  touch(id: string): void;
  /** Counts the outcome of the write for a resource, for metrics, when the write is committed. */
  countOutcome(outcome: Outcome): void;
  /** Returns the trace for a new resource that is not part of a trace yet; undefined if there is none. */
  traceOf(id: string): TraceParent | undefined;
  /**
   * Adds the text of a project to the index of projectSearch, when the write is committed.
   * @returns the number by which the project's row names its text in the index
   */
  indexText(scope: Scope, text: string): Promise<number>;
  /** Seals the new start of an audit chain. @throws Error unless called by the job that removes its oldest rows */
  sealAnchor(facts: AnchorFacts): AuditAnchor;
  /**
   * Removes an organization and every row that it owns, in any table, without a record.
   * @param onTable called for each table that holds such rows, before they are removed
   */
  deleteOwnedRows(organizationId: string, onTable: (table: string, rows: number) => void): Promise<void>;
  /** Returns the value of a write-back row after the last change. A write must not change one twice at the same time. */
  readWriteBack<K, V>(row: WriteBackRow<K, V>, key: K): Promise<V>;
  /** Changes the value of a write-back row; it is written when the write is committed. */
  setWriteBack<K, V>(row: WriteBackRow<K, V>, key: K, value: V): void;
  /**
   * Runs a part of the write that may fail: when `part` throws, neither its rows nor its records remain, and a caller
   * that catches the error may continue.
   * @throws the error of `part`; StoreUnavailable when the engine failed, for example on a full disk: this is
   * unrelated to the part, and ends the write
   */
  attempt<T>(part: () => Promise<T>): Promise<T>;
}

/**
 * A lock of a write: the id of an organization, or null for data that belongs to none: the accounts, their memberships
 * in organizations, and the record of the installation.
 */
export type Lock = string | null;

/**
 * The locks of a write. Writes without a common lock run in parallel where the engine has more than one writer; every
 * other write waits for one that locks the installation. A function finds the locks by reading, first without locks.
 * It reads again within the write, which starts over if more locks are needed by then.
 */
export type Locks = readonly Lock[] | "installation" | ((db: Reader) => Promise<readonly Lock[]>);

export interface WriteOptions {
  /** A write whose signal is aborted before its turn comes does not begin. */
  readonly signal?: AbortSignal;
  /** The locks of the write; a change of anything else fails. Default: the installation. */
  readonly locks?: Locks;
  /** The trace of the call that writes. */
  readonly trace?: TraceParent | undefined;
  /** True for a write of a job, which fails once another process runs the jobs. Default false. */
  readonly asLeader?: boolean;
}

/** Options of a bookkeeping update. It locks no organization by default. */
export type BookkeepingOptions = Pick<WriteOptions, "locks" | "asLeader">;

/** Returns the options of a write that changes only rows of one organization. */
export const within = ({ organizationId }: Scope): WriteOptions => ({ locks: [organizationId] });

export interface Store {
  /** Read-only access to durably committed rows. */
  readonly reader: Reader;
  /**
   * The same for queries that read much or may take long, such as those of jobs, counts, and streams that catch up. On
   * PostgreSQL, short reads of one turn of the event loop share a connection; each of these queries has its own.
   */
  readonly longReader: Reader;
  /**
   * The search of projects, which may be a million. Other lists, of thousands of rows, use `searcher` and test row by
   * row.
   */
  readonly projectSearch: ProjectSearch;
  /** Returns a reader of the scope's rows each of whose queries is a search: for lists that look for a text. */
  searcher(scope: Scope): Reader;
  /**
   * Returns a reader of the scope's rows for other lists: a query that tests many rows continues as
   * a search.
   */
  lister(scope: Scope): Reader;
  /**
   * Runs a write; the only way to change a resource. All changes of `fn`, including the audit and event rows of its
   * records, are durable when the promise resolves, and none is made when it rejects. Inside `fn` only queries of its
   * own transaction may be awaited. A long write lets reads run between two queries; other writes wait for its end.
   * @throws the error of `fn`; StoreUnavailable when the database is busy or cannot commit
   */
  write<T>(
    actor: Actor,
    operation: string,
    fn: (tx: WriteTransaction) => Promise<T>,
    options?: WriteOptions,
  ): Promise<T>;
  /**
   * Makes a bookkeeping update, which changes no resource and leaves no audit row; it can change
   * only the columns of {@link BookkeepingColumns}.
   */
  note<T extends keyof BookkeepingColumns>(
    table: T,
    id: string,
    values: { [C in BookkeepingColumns[T]]?: Schema[T][C & keyof Schema[T]] },
  ): Promise<void>;
  /**
   * Makes several bookkeeping updates atomically, such as a score and the rows that it counted. A function reads the
   * values that the updates depend on in the same transaction, under the locks of the options.
   */
  touchAll(
    notes: readonly BookkeepingUpdate[] | ((db: Reader) => Promise<readonly BookkeepingUpdate[]>),
    options?: BookkeepingOptions,
  ): Promise<void>;
  /** Returns why the database rejected the last change, in words for the operator; undefined after it accepted one. */
  problem(): string | undefined;
  /** Tries a change without effect, while there is a problem; never rejects. */
  probe(): Promise<void>;
  /** The counters of this process since it opened the store. */
  readonly measures: StoreMeasures;
  /** The other servers; absent where there can be none. */
  readonly others?: Others;
  /** Returns whether this process runs the jobs; with SQLite, there is only one process. */
  leads(): boolean;
  /** Raises the feature level by one when no older server has run for some seconds. @returns the new level, if any */
  raiseFeatureLevel(): Promise<number | undefined>;
  /**
   * Calls `listener` after each commit of this process, and within a second after those of other processes.
   * @returns the function that removes the listener
   */
  onCommit(listener: () => void): () => void;
  /**
   * Calls `listener` after commits of this process that change the resource, recorded or not, and
   * after all commits of others, whose changes are unknown. Topics of src/store/topics.ts work in
   * the same way.
   * @returns the function that removes the listener
   */
  onChange(id: string, listener: () => void): () => void;
  close(): Promise<void>;
}

/** A database opened for reading, as a snapshot taken at the first read. */
export interface ReadOnlyStore {
  readonly reader: Reader;
  close(): void | Promise<void>;
}

/** The columns that a bookkeeping update can change. */
export interface BookkeepingColumns {
  token: "last_used_at" | "hash" | "hmac_key_id";
  project: "popularity";
  environment: "counted";
  runner: "seen_at" | "instance_seen_at" | "agent_slots" | "requests_until" | "kept_policies";
}

export const BOOKKEEPING_COLUMNS: {
  readonly [T in keyof BookkeepingColumns]: readonly BookkeepingColumns[T][];
} = {
  token: ["last_used_at", "hash", "hmac_key_id"],
  project: ["popularity"],
  environment: ["counted"],
  runner: ["seen_at", "instance_seen_at", "agent_slots", "requests_until", "kept_policies"],
};

export interface BookkeepingUpdate {
  readonly table: keyof BookkeepingColumns;
  readonly id: string;
  readonly values: Readonly<Record<string, number | string | Uint8Array | null>>;
}

/** The error of a database that is busy, full or closing; the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /**
   * Reason why the database accepts no changes, in words for the operator; undefined while it is
   * only busy.
   */
  readonly problem: string | undefined;

  constructor(message: string, { problem, cause }: { problem?: string | undefined; cause?: unknown } = {}) {
    super(message, { cause });
    this.problem = problem;
  }
}
