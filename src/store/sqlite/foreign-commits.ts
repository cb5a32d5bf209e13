import type Database from "better-sqlite3";

/** Interval between checks for commits of other processes, such as those of the command line. */
const POLL_INTERVAL_MS = 1_000;

/**
 * Calls `tell` within a second after another connection has committed, such as one of another
 * process. One query of the engine serves any number of listeners.
 * @param raw the connection that writes: its own commits are not reported
 * @returns the function that stops it
 */
export function watchForeignCommits(raw: Database.Database, tell: () => void): () => void {
  const version = raw.prepare<[], number>("pragma data_version").pluck();
  let seen = version.get();
  const timer = setInterval(() => {
    const now = version.get();
    if (now === seen) return;
    seen = now;
    tell();
  }, POLL_INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
