import { Cron } from "croner";
import { valueUnusable } from "../error.ts";

/** The fields of an expression in order, each with its range. */
const FIELDS = [
  ["minute", "0 to 59"],
  ["hour", "0 to 23"],
  ["day of month", "1 to 31"],
  ["month", "1 to 12, or JAN to DEC"],
  ["day of week", "0 to 7, where 0 and 7 are Sunday, or SUN to SAT"],
] as const;

/**
 * Values of a list, range or step. croner accepts more (L, W, #, ?, +), which other parsers of
 * five-field cron reject: an expression either means the same everywhere or is rejected.
 */
const VALUE = /^(?:\*|\d{1,2}|[a-z]{3})$/i;

/** The times at which a trigger is due. */
export interface Schedule {
  /** Five fields separated by white space. */
  readonly cronExpression: string;
  /** Name in the IANA database; empty for UTC. */
  readonly timeZone: string;
}

/** Maximum number of missed instants that are counted; a schedule of every minute reaches it after 17 hours. */
export const MAX_MISSED = 1_000;

/**
 * Requires that a schedule is valid. Where neither day field of an expression starts with `*`, a
 * day that matches either is due; otherwise a day must match both, as in Vixie cron.
 * @param nowMs epoch milliseconds
 * @param path JSON path of the schedule
 * @throws DomainError VALUE_UNUSABLE when the expression does not parse or is never due after
 * nowMs, and for an unknown time zone
 */
export function requireValidSchedule(schedule: Schedule, nowMs: number, path: string): void {
  const { cronExpression, timeZone } = schedule;
  const field = `${path}.cronExpression`;
  const problem = problemOf(cronExpression);
  if (problem !== undefined) throw valueUnusable(field, problem);
  if (!isTimeZone(timeZone)) {
    throw valueUnusable(
      `${path}.timeZone`,
      `${path}.timeZone: "${timeZone}" is not a time zone: name one of the IANA database, such as Europe/Berlin`,
    );
  }
  if (!hasSuchDay(cronExpression) || nextInstant(schedule, nowMs) === undefined) {
    throw valueUnusable(field, `"${cronExpression}" never comes due: no month it names has such a day`);
  }
}

/**
 * Returns the first instant after afterMs (epoch milliseconds, exclusive), or undefined when the expression is never
 * due again.
 * @param schedule one that {@link requireValidSchedule} accepts; croner throws a TypeError for others
 */
export function nextInstant(schedule: Schedule, afterMs: number): number | undefined {
  return instants(schedule).nextRun(new Date(afterMs))?.getTime();
}

/** Maximum number of instants that are returned for a schedule. */
const MAX_UPCOMING = 5;
const YEAR_MS = 366 * 86_400_000;

/**
 * Returns the first instants after afterMs (epoch milliseconds, exclusive): the next one, and up to four more within
 * 366 days after afterMs. Later ones are omitted: finding five 29ths of February takes milliseconds.
 * @param schedule one that {@link requireValidSchedule} accepts
 */
export function upcomingInstants(schedule: Schedule, afterMs: number): number[] {
  const cron = instants(schedule);
  const found: number[] = [];
  let instant = cron.nextRun(new Date(afterMs));
  while (instant !== null && found.length < MAX_UPCOMING) {
    if (found.length > 0 && instant.getTime() - afterMs > YEAR_MS) break;
    found.push(instant.getTime());
    instant = found.length < MAX_UPCOMING ? cron.nextRun(instant) : null;
  }
  return found;
}

/**
 * Returns the instant that a schedule owes after fromMs (exclusive) and up to nowMs (inclusive): the latest one,
 * which runs, and the number of missed ones before it, at most MAX_MISSED. Undefined when none was due.
 */
export function findDueInstant(
  schedule: Schedule,
  fromMs: number,
  nowMs: number,
): { instantMs: number; missed: number } | undefined {
  const cron = instants(schedule);
  // previousRuns excludes its reference; adding a millisecond includes an instant that equals now.
  const latest = cron.previousRuns(1, new Date(nowMs + 1))[0];
  if (latest === undefined || latest.getTime() <= fromMs) return undefined;
  let missed = 0;
  let instant = cron.nextRun(new Date(fromMs));
  while (instant !== null && instant < latest && missed < MAX_MISSED) {
    missed += 1;
    instant = cron.nextRun(instant);
  }
  return { instantMs: latest.getTime(), missed };
}

/** Span over which the daily prebuilds of one hour are spread, so that runners do not get all of them at once. */
const SPREAD_SECONDS = 15 * 60;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Returns the first instant after afterMs (epoch milliseconds, exclusive) at which the daily prebuild of hourUtc (0
 * to 23) starts: within the first 15 minutes of that hour, every day at the same second, which the id determines.
 */
export function prebuildInstant(hourUtc: number, id: string, afterMs: number): number {
  const ofDayMs = hourUtc * HOUR_MS + (hash(id) % SPREAD_SECONDS) * 1_000;
  const startOfDayMs = Math.floor(afterMs / DAY_MS) * DAY_MS;
  const instantMs = startOfDayMs + ofDayMs;
  return instantMs > afterMs ? instantMs : instantMs + DAY_MS;
}

/**
 * Returns 32-bit FNV-1a. It must be the same on every machine and in every release, or prebuilds would run twice a
 * day.
 */
function hash(id: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < id.length; index += 1) {
    state = Math.imul(state ^ id.charCodeAt(index), 0x01000193) >>> 0;
  }
  return state;
}

function instants({ cronExpression, timeZone }: Schedule): Cron {
  return new Cron(cronExpression, {
    mode: "5-part",
    timezone: timeZone || "UTC",
    // croner itself looks for a field that is exactly `*`, and would treat `*/2` in one field as "or".
    domAndDow: mustFitBothDays(cronExpression),
  });
}

function mustFitBothDays(expression: string): boolean {
  const [, , dayOfMonth = "", , dayOfWeek = ""] = fieldsOf(expression);
  return dayOfMonth.startsWith("*") || dayOfWeek.startsWith("*");
}

/** Checks day and month without the day of the week, with which croner's search takes ten times as long. */
function hasSuchDay(expression: string): boolean {
  if (!mustFitBothDays(expression)) return true;
  const [, , dayOfMonth, month] = fieldsOf(expression);
  return nextInstant({ cronExpression: `0 0 ${dayOfMonth} ${month} *`, timeZone: "" }, 0) !== undefined;
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name || "UTC" });
    return true;
  } catch {
    return false;
  }
}

function problemOf(expression: string): string | undefined {
  const fields = fieldsOf(expression);
  if (fields.length !== FIELDS.length) {
    return `write the five cron fields minute, hour, day of month, month and day of week, such as "0 9 * * 1-5"; "${expression}" has ${fields.length}`;
  }
  const wrong = fields.findIndex((text, index) => !isField(text, index));
  const [name, takes] = FIELDS[wrong] ?? [];
  if (name === undefined) return undefined;
  return `"${fields[wrong]}" is no ${name}: it takes ${takes}, and lists (1,2), ranges (1-3) and steps (*/2, 1-9/2)`;
}

/** Checks one field with wildcards in all others, to find out which field croner rejects. */
function isField(text: string, index: number): boolean {
  if (!text.split(/[,\-/]/).every((value) => VALUE.test(value))) return false;
  try {
    instants({
      cronExpression: FIELDS.map((_, other) => (other === index ? text : "*")).join(" "),
      timeZone: "",
    });
    return true;
  } catch {
    return false;
  }
}

function fieldsOf(expression: string): string[] {
  return expression.split(/\s+/).filter((text) => text !== "");
}
