import type Database from "better-sqlite3";

/** How often commits of other processes are looked for, such as those of the command line. */
const LOOK_EVERY_MS = 1_000;

/**
 * Calls `tell` within a second after another connection has committed, such as
 * one of another process. One question to the engine serves however many wait.
 *
 * @param raw the connection that writes: what it commits itself is not told
 * @returns what ends it
 */
export function watchForeignCommits(raw: Database.Database, tell: () => void): () => void {
  const version = raw.prepare<[], number>("pragma data_version").pluck();
  let seen = version.get();
  const timer = setInterval(() => {
    const now = version.get();
    if (now === seen) return;
    seen = now;
    tell();
  }, LOOK_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
