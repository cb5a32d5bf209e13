import { Cron } from "croner";
import { valueUnusable } from "./error.ts";

/** The fields of an expression in their order, each with what it takes. */
const FIELDS = [
  ["minute", "0 to 59"],
  ["hour", "0 to 23"],
  ["day of month", "1 to 31"],
  ["month", "1 to 12, or JAN to DEC"],
  ["day of week", "0 to 7, where 0 and 7 are Sunday, or SUN to SAT"],
] as const;

/**
 * What may stand in a list, range or step. croner takes more (L, W, #, ?, +),
 * which other readers of five-field cron do not: an expression means the same
 * everywhere or is refused.
 */
const VALUE = /^(?:\*|\d{1,2}|[a-z]{3})$/i;

/** The most missed instants that are counted: a schedule of every minute reaches it after 17 hours. */
export const MOST_MISSED = 1_000;

/**
 * An expression is five fields that white space parts, read in UTC. Where
 * neither day field starts with `*`, a day of either one is due; otherwise a
 * day must fit both, as in Vixie cron.
 *
 * @param nowMs epoch milliseconds
 * @param field JSON path of the expression
 * @throws DomainError VALUE_UNUSABLE when it does not parse or never comes due after nowMs
 */
export function checkSchedule(expression: string, nowMs: number, field: string): void {
  const problem = problemOf(expression);
  if (problem !== undefined) throw valueUnusable(field, problem);
  if (nextInstant(expression, nowMs) === undefined) {
    throw valueUnusable(field, `"${expression}" never comes due: no month it names has such a day`);
  }
}

/**
 * The first instant after afterMs (epoch milliseconds, exclusive), or undefined
 * when the expression never comes due again.
 *
 * @param expression one that checkSchedule accepts; throws croner's TypeError for another
 */
export function nextInstant(expression: string, afterMs: number): number | undefined {
  return instants(expression).nextRun(new Date(afterMs))?.getTime();
}

/**
 * What a schedule owes after fromMs (exclusive) and up to nowMs (inclusive):
 * the latest instant, which runs, and how many before it were missed, at most
 * MOST_MISSED. Undefined when nothing came due.
 */
export function dueInstant(
  expression: string,
  fromMs: number,
  nowMs: number,
): { instantMs: number; missed: number } | undefined {
  const schedule = instants(expression);
  // previousRuns leaves out its own reference; a millisecond later includes an instant that is now.
  const latest = schedule.previousRuns(1, new Date(nowMs + 1))[0];
  if (latest === undefined || latest.getTime() <= fromMs) return undefined;
  let missed = 0;
  let instant = schedule.nextRun(new Date(fromMs));
  while (instant !== null && instant < latest && missed < MOST_MISSED) {
    missed += 1;
    instant = schedule.nextRun(instant);
  }
  return { instantMs: latest.getTime(), missed };
}

/** Daily prebuilds of one hour start spread over this span, so that runners are not asked all at once. */
const SPREAD_SECONDS = 15 * 60;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The first instant after afterMs (epoch milliseconds, exclusive) at which the
 * daily prebuild of hourUtc (0 to 23) starts: within the first 15 minutes of
 * that hour, each day at the same second, which the id decides.
 */
export function prebuildInstant(hourUtc: number, id: string, afterMs: number): number {
  const ofDayMs = hourUtc * HOUR_MS + (hash(id) % SPREAD_SECONDS) * 1_000;
  const startOfDayMs = Math.floor(afterMs / DAY_MS) * DAY_MS;
  const instantMs = startOfDayMs + ofDayMs;
  return instantMs > afterMs ? instantMs : instantMs + DAY_MS;
}

/** FNV-1a of 32 bits: the same on every machine and in every release, or prebuilds would run twice a day. */
function hash(id: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < id.length; index += 1) {
    state = Math.imul(state ^ id.charCodeAt(index), 0x01000193) >>> 0;
  }
  return state;
}

function instants(expression: string): Cron {
  const [, , dayOfMonth = "", , dayOfWeek = ""] = fieldsOf(expression);
  return new Cron(expression, {
    mode: "5-part",
    timezone: "UTC",
    // croner itself looks for a field that is exactly `*`, and would read `*/2` in one as "or".
    domAndDow: dayOfMonth.startsWith("*") || dayOfWeek.startsWith("*"),
  });
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

/** The field alone, among others that allow everything: so it is known which one croner refuses. */
function isField(text: string, index: number): boolean {
  if (!text.split(/[,\-/]/).every((value) => VALUE.test(value))) return false;
  try {
    instants(FIELDS.map((_, other) => (other === index ? text : "*")).join(" "));
    return true;
  } catch {
    return false;
  }
}

function fieldsOf(expression: string): string[] {
  return expression.split(/\s+/).filter((text) => text !== "");
}
