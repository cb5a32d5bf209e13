/** The roles of connections. The session holds locks across transactions and listens for wake-ups. */
export type ConnectionRole = "read" | "write" | "session";

/**
 * Settings of every session. A client that vanishes silently, with its machine or its network, loses its locks within
 * 10 s: keepalives begin after 3 s of silence, and three more seconds without an answer end the connection, even while
 * a statement runs. A live client that is idle in a transaction loses its connection after 6 s.
 */
const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  tcp_keepalives_idle: "3",
  tcp_keepalives_interval: "1",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "6000",
  client_connection_check_interval: "1000",
  idle_in_transaction_session_timeout: "6000",
  // The locks of a write are its isolation: they do not protect a transaction that reads a snapshot older than the
  // locks.
  default_transaction_isolation: "read committed",
  // An answered commit survives a crash, whatever the settings of the database and its user are.
  synchronous_commit: "on",
  // Statements are short and prepared: compiling one costs more than running it.
  jit: "off",
  timezone: "UTC",
};

/** Statement timeout of reads, in milliseconds. */
export const READ_LIMIT_MS = 10_000;

/** Settings of the read connections. */
const READ_SETTINGS: Readonly<Record<string, string>> = {
  default_transaction_read_only: "on",
  statement_timeout: String(READ_LIMIT_MS),
};

/** Time in milliseconds that a write waits for its locks when its caller has no deadline. */
export const LOCK_WAIT_MS = 10_000;

/** Granularity in milliseconds of the statement timeout for a caller with a deadline. */
const LIMIT_STEP_MS = 100;

/**
 * Returns a caller's remaining time, rounded up so that the limit seldom differs from that of the previous statement.
 */
export const limitFor = (waitMs: number, mostMs: number): number =>
  Math.min(mostMs, Math.max(1, Math.ceil(waitMs / LIMIT_STEP_MS)) * LIMIT_STEP_MS);

/** Settings of the write connections, where their transactions do not set their own. */
const WRITE_SETTINGS: Readonly<Record<string, string>> = {
  lock_timeout: String(LOCK_WAIT_MS),
  statement_timeout: "0",
};

/** Settings of the session, which polls once a second: a process that stops polling loses its session. */
const HOLDING_SETTINGS: Readonly<Record<string, string>> = { idle_session_timeout: "6000" };

/** Returns the settings of a connection by their names. */
export const settingsOf = (role: ConnectionRole): Readonly<Record<string, string>> => ({
  ...SESSION_SETTINGS,
  ...(role === "read" && READ_SETTINGS),
  ...(role === "write" && WRITE_SETTINGS),
  ...(role === "session" && HOLDING_SETTINGS),
});
