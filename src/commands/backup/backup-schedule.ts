import type { Config } from "../../config/config.ts";
import { DomainError } from "../../domain/error.ts";
import { findDueInstant, nextInstant, requireValidSchedule } from "../../domain/project/schedule.ts";
import { createLog } from "../../log.ts";
import type { RunningService, Terminal } from "../definitions/command-line.ts";
import { makeFolder } from "../folders/file-access.ts";
import { requireKeyFile } from "../open-data.ts";
import { StartError } from "../start-error.ts";
import { type BackupFolder, backUpInto, lastGoodCopy } from "./backup-folder.ts";

/** A folder of copies and their schedule. */
export interface ScheduledBackup extends BackupFolder {
  /** Cron expression of five fields, in UTC. */
  readonly schedule: string;
}

/** Delay of the retry after a failed copy, unless the schedule is due earlier. */
const RETRY_MS = 600_000;

/** Maximum interval between checks of the clock: it may be set, and the machine may sleep. */
const CHECK_INTERVAL_MS = 60_000;

/**
 * Makes copies of the data on schedule until it is stopped. Makes a missed copy, and a folder's first copy, at once.
 * Logs a failed copy with the age of the last good one, and retries.
 *
 * @throws StartError when the expression is invalid, or never due
 */
export function startSchedule(config: Config, backup: ScheduledBackup, terminal: Terminal): RunningService {
  const { folder, now } = backup;
  const schedule = { cronExpression: backup.schedule, timeZone: "" };
  try {
    requireValidSchedule(schedule, now(), "--schedule");
  } catch (error) {
    throw error instanceof DomainError ? new StartError(error.message) : error;
  }
  requireKeyFile(config);
  makeFolder(folder);
  const log = createLog(config.logLevel, terminal.writeLog);
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let running: Promise<void> = Promise.resolve();

  /** Returns when the next copy is due: now if one is missing. */
  const dueAt = () => {
    const last = lastGoodCopy(folder);
    const isMissing = last === undefined || findDueInstant(schedule, last, now()) !== undefined;
    return isMissing ? now() : (nextInstant(schedule, now()) ?? Number.POSITIVE_INFINITY);
  };
  const wait = (until: number) => {
    if (isStopped) return;
    const check = () => {
      if (now() < until) wait(until);
      else running = run();
    };
    timer = setTimeout(check, Math.min(Math.max(0, until - now()), CHECK_INTERVAL_MS));
  };
  const run = async () => {
    const startedAt = now();
    try {
      const { file, bytes, removed } = await backUpInto(config, backup);
      const next = nextInstant(schedule, now());
      log.info(
        { file, bytes, removed, seconds: (now() - startedAt) / 1000, next: next && new Date(next) },
        "a good copy of the data was made",
      );
      wait(next ?? Number.POSITIVE_INFINITY);
    } catch (err) {
      const last = lastGood(folder);
      const ageSeconds = last && Math.round((now() - last) / 1000);
      log.error(
        { err, lastGood: last && new Date(last), ageSeconds },
        "no good copy of the data was made; it is tried again, and the older ones stay",
      );
      wait(Math.min(now() + RETRY_MS, nextInstant(schedule, now()) ?? Number.POSITIVE_INFINITY));
    }
  };
  const first = dueAt();
  terminal.print(
    `Copies of the data go to ${folder}; the next one is due at ${new Date(first).toISOString()}\n`,
  );
  wait(first);
  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running;
      log.info({}, "stopped");
    },
  };
}

/** Returns the time of the newest good copy; undefined when there is none or the folder cannot be read. */
function lastGood(folder: string): number | undefined {
  try {
    return lastGoodCopy(folder);
  } catch {
    return undefined;
  }
}
