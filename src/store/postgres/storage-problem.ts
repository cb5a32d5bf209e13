import { StoreUnavailable } from "../store.ts";

/** The problem of a standby, and of a database whose transactions are read-only by its settings. */
export const READ_ONLY = "the database cannot be written: it is read-only, like a standby";

/** Problems that the operator can solve, by SQLSTATE or by the beginning of one, or by the code of a socket's error. */
const PROBLEMS: readonly (readonly [code: string, problem: string])[] = [
  ["53100", "the disk of the database is full"],
  [
    "53300",
    "the database takes no more connections: raise its max_connections, or lower --database-connections of the servers",
  ],
  ["53", "the database is out of a resource: connections, memory or disk"],
  ["25006", READ_ONLY],
  ["57P", "the database shuts down or starts up"],
  ["58", "the disk of the database fails"],
  ["XX001", "a table of the database is damaged: restore a backup"],
  ["XX002", "an index of the database is damaged: restore a backup"],
  ["28", "the database refuses the user or the password"],
  ["3D000", "the database does not exist; create it, or correct --database-url"],
  ["42501", "the user may not write to the tables of the database"],
  [
    "08P01",
    "a pooler does not pass on the settings of connections: name the database itself in --database-url",
  ],
  ["08", "the connection to the database broke"],
  [
    "ECONNREFUSED",
    "the database cannot be reached: nothing listens at its address; start it, or correct --database-url",
  ],
  ["ENOTFOUND", "the database cannot be reached: its name is unknown"],
  ["EAI_AGAIN", "the database cannot be reached: its name cannot be resolved"],
  ...["SELF_SIGNED_CERT", "DEPTH_ZERO_", "UNABLE_TO_", "CERT_", "ERR_TLS_CERT"].map(
    (code) =>
      [code, "the certificate of the database is not one that sslmode and sslrootcert accept"] as const,
  ),
  ["ECONN", "the connection to the database broke"],
  ["EPIPE", "the connection to the database broke"],
  ["ETIMEDOUT", "the database cannot be reached: it does not answer"],
  ["EHOSTUNREACH", "the database cannot be reached: there is no way to its host"],
  ["ENETUNREACH", "the database cannot be reached: there is no way to its network"],
];

/** Texts of the driver's errors that have no code. */
const BROKEN = /^(Connection terminated|Client has encountered)/;
const NO_TLS = /does not support SSL/;
const NO_PASSWORD = /client password must be a/;

/** Texts of the driver's timeout errors: of a query, of a new connection, and of waiting for a pooled connection. */
const UNANSWERED: readonly string[] = [
  "Query read timeout",
  "timeout expired",
  "Connection terminated due to connection timeout",
];

/** Text of the error of a pool whose connections are all in use: the database is slower than the callers. */
const BUSY = "timeout exceeded when trying to connect";

/** Returns why the database accepts no changes, in words for the operator; undefined for other errors. */
export function storageProblem(error: unknown): string | undefined {
  const code = codeOf(error);
  if (code !== undefined) return PROBLEMS.find(([begin]) => code.startsWith(begin))?.[1];
  if (!(error instanceof Error)) return undefined;
  if (error instanceof StoreUnavailable) return error.problem;
  // A name with several addresses fails with the errors of all addresses.
  if (error instanceof AggregateError) return storageProblem(error.errors[0]);
  if (UNANSWERED.includes(error.message)) return "the database cannot be reached: it does not answer";
  if (NO_PASSWORD.test(error.message))
    return "the database asks for a password: use --database-password-file or PGPASSWORD";
  if (NO_TLS.test(error.message))
    return "the database speaks no TLS, which the sslmode of --database-url asks for: set ssl = on in its postgresql.conf, or leave sslmode out where the network is trusted";
  return BROKEN.test(error.message) ? "the connection to the database broke" : undefined;
}

/**
 * Returns whether the connection of an error is no longer usable. A read-only connection counts as unusable: another
 * may reach the new primary. The engine ends the connection of a process suspended in a transaction (25P03).
 */
export function isBroken(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return /^(08|57P|25006|25P0[34]|E[A-Z]+$)/.test(code);
  return error instanceof Error && (UNANSWERED.includes(error.message) || BROKEN.test(error.message));
}

/**
 * Returns whether a connection broke at once, so that there is time to retry a read; false when it stopped answering.
 */
export function isDisconnect(error: unknown): boolean {
  const isSilent = codeOf(error) === "ETIMEDOUT" || UNANSWERED.includes((error as Error).message);
  return isBroken(error) && !isSilent;
}

/** Returns whether the same transaction may succeed at once: a deadlock, a failed serialization, or a stale plan. */
export function isRetryable(error: unknown): boolean {
  const code = codeOf(error);
  return code === "40001" || code === "40P01" || isStalePlan(error);
}

/** Returns whether the columns of a prepared statement have changed since, because a newer release added one. */
export function isStalePlan(error: unknown): boolean {
  return codeOf(error) === "0A000" && (error as Error).message.startsWith("cached plan must not change");
}

/**
 * Returns whether engine and driver disagree on the prepared statements, because the engine skipped the parsing of
 * one.
 */
export function isPreparedOtherwise(error: unknown): boolean {
  const code = codeOf(error);
  return code === "26000" || code === "42P05";
}

/** Returns whether a lock was not available in time, or the statement took too long. */
export function isTimeout(error: unknown): boolean {
  const code = codeOf(error);
  return code === "55P03" || code === "57014";
}

/** Returns whether the engine itself failed, rather than the statement or its values. */
export function isEngineFailure(error: unknown): boolean {
  if (error instanceof Error && error.message === BUSY) return true;
  return storageProblem(error) !== undefined || isBroken(error) || isRetryable(error) || isTimeout(error);
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
