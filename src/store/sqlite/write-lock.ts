import { setTimeout as delay } from "node:timers/promises";
import type Database from "better-sqlite3";
import { BUSY_TIMEOUT_MS, RETRY_MS } from "./connection.ts";

/**
 * Begins a transaction that writes. It retries while another connection holds the lock: the
 * engine's own wait would block this thread, with its reads and with the very write that a second
 * store of this process may be ending. A command next to a busy server gets the lock more often
 * too, because the engine's waits of up to 100 ms would miss many free moments.
 * @param raw whose `busy_timeout` is 0
 * @throws the engine's error when the lock is not available in time
 */
export async function beginWrite(raw: Database.Database): Promise<void> {
  const began = performance.now();
  for (;;) {
    try {
      raw.exec("begin immediate");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() - began > BUSY_TIMEOUT_MS) throw error;
    }
    await delay(RETRY_MS);
  }
}

function isBusy(error: unknown): boolean {
  return (error as { code?: string }).code?.startsWith("SQLITE_BUSY") ?? false;
}
