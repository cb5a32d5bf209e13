/** The roles of connections; the session holds locks for longer than a transaction, and waits for wake-ups. */
export type ConnectionRole = "read" | "write" | "session";

/**
 * Settings of every session. A client that vanishes without a word, with its machine or its network, frees its locks
 * within 10 s: keepalives begin after 3 s of silence, and three more seconds without an answer end the connection, also
 * while a statement runs. One that is there and does nothing in a transaction loses it after 6 s.
 */
const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  tcp_keepalives_idle: "3",
  tcp_keepalives_interval: "1",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "6000",
  client_connection_check_interval: "1000",
  idle_in_transaction_session_timeout: "6000",
  // The locks of a write are its isolation: they are worth nothing to a transaction that reads what was before them.
  default_transaction_isolation: "read committed",
  // What a server has answered outlives a crash, whatever the settings of the database and its user say.
  synchronous_commit: "on",
  // Statements are short and prepared: to compile one costs more than to run it.
  jit: "off",
  timezone: "UTC",
};

/** Time after which the engine ends a query that reads, in milliseconds. */
export const READ_LIMIT_MS = 10_000;

/** Settings of the connections that read. */
const READ_SETTINGS: Readonly<Record<string, string>> = {
  default_transaction_read_only: "on",
  statement_timeout: String(READ_LIMIT_MS),
};

/** Time for which a write waits for its locks when its caller has no deadline, in milliseconds. */
export const LOCK_WAIT_MS = 10_000;

/** Precision of the limit of a statement whose caller has a deadline, in milliseconds. */
const LIMIT_STEP_MS = 100;

/** Returns a limit for what a caller waits for, rounded up so that it is seldom another than that of the statement before. */
export const limitFor = (waitMs: number, mostMs: number): number =>
  Math.min(mostMs, Math.max(1, Math.ceil(waitMs / LIMIT_STEP_MS)) * LIMIT_STEP_MS);

/** Settings of the connections that write, for what their transactions do not set themselves. */
const WRITE_SETTINGS: Readonly<Record<string, string>> = {
  lock_timeout: String(LOCK_WAIT_MS),
  statement_timeout: "0",
};

/** Settings of the session: it looks once a second, and a process that does not look any more loses it. */
const HOLDING_SETTINGS: Readonly<Record<string, string>> = { idle_session_timeout: "6000" };

/** Returns the settings of a connection by their names. */
export const settingsOf = (role: ConnectionRole): Readonly<Record<string, string>> => ({
  ...SESSION_SETTINGS,
  ...(role === "read" && READ_SETTINGS),
  ...(role === "write" && WRITE_SETTINGS),
  ...(role === "session" && HOLDING_SETTINGS),
});
