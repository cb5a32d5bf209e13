/** The number and age of the backup copies that a folder keeps. */
export interface CopiesKept {
  /** Number of newest copies to keep, at least 1. */
  readonly number: number;
  /** Maximum age of a copy in days, however few copies there are; 0 for no limit. The newest copy is always kept. */
  readonly days: number;
}

const NAME = /^chartroom-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z\.db$/;

const DAY_MS = 86_400_000;

/** Returns the file name of the copy made at a time, in milliseconds since 1970 UTC. */
export function nameOfCopy(at: number): string {
  return `chartroom-${new Date(at).toISOString().replaceAll(/[-:]/g, "")}.db`;
}

/** Returns the time in a copy's file name, in milliseconds since 1970 UTC; undefined for any other name. */
export function timeOfCopy(name: string): number | undefined {
  const [, year, month, day, hour, minute, second] = NAME.exec(name) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}

/** Returns the time of the newest copy among the file names of a folder; undefined without one. */
export function newestCopy(names: readonly string[]): number | undefined {
  const times = names.map(timeOfCopy).filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(...times);
}

/**
 * Returns the copies to remove from a folder once a new copy was verified. Files with other names are never removed.
 *
 * @param made name of the new copy, which is kept even if its time is wrong
 * @param now milliseconds since 1970 UTC
 */
export function copiesToRemove(
  names: readonly string[],
  made: string,
  { number, days }: CopiesKept,
  now: number,
): readonly string[] {
  const older = names
    .filter((name) => name !== made && timeOfCopy(name) !== undefined)
    .toSorted((a, b) => (timeOfCopy(b) ?? 0) - (timeOfCopy(a) ?? 0));
  const isTooOld = (name: string) => days > 0 && now - (timeOfCopy(name) ?? now) > days * DAY_MS;
  return older.filter((name, place) => place >= number - 1 || isTooOld(name));
}
