/** The number and the age of the copies of the data that a folder keeps. */
export interface CopiesKept {
  /** The newest copies that stay, at least 1. */
  readonly number: number;
  /** Age in days past which a copy goes, however few there are; 0 for no bound. The newest one stays. */
  readonly days: number;
}

const NAME = /^chartroom-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z\.db$/;

const DAY_MS = 86_400_000;

/** Returns the name of the copy of a moment (milliseconds since 1970 UTC). */
export function nameOfCopy(at: number): string {
  return `chartroom-${new Date(at).toISOString().replaceAll(/[-:]/g, "")}.db`;
}

/** Returns the moment of a copy by its name (milliseconds since 1970 UTC); undefined where the name is no copy's. */
export function timeOfCopy(name: string): number | undefined {
  const [, year, month, day, hour, minute, second] = NAME.exec(name) ?? [];
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}

/** Returns the moment of the newest copy among the names of a folder; undefined without one. */
export function newestCopy(names: readonly string[]): number | undefined {
  const times = names.map(timeOfCopy).filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.max(...times);
}

/**
 * Returns which files of a folder go, once a new copy was found good. Files with other names are never among them.
 *
 * @param made name of the new copy, which stays whatever the clock says
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
