import { type LoggerOptions, pino } from "pino";

/** The log as the parts of the server see it: facts first, then what happened. */
export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Nothing puts a header into a line today; should anything ever, the credential is not in it. */
const REDACTED = ["*.authorization", "*.headers.authorization", "*.token.value", "*.secret"];

const standardError = pino.destination({ dest: 2, sync: true });
// A log that cannot be written, as on a full disk, must not end the server; the lines are lost.
standardError.on("error", () => {});

/** Lines that are written when this turn of the event loop ends; empty when there are none. */
let gathered = "";

/** Writes what is gathered; to be called when the process ends, so that its last lines are not lost. */
export function flushLog(): void {
  if (gathered === "") return;
  const lines = gathered;
  gathered = "";
  standardError.write(lines);
}

/** A write for each line costs more than making the line; under load a turn has many. */
function gather(line: string): void {
  if (gathered === "") setImmediate(flushLog);
  gathered += line;
}

/**
 * Structured lines, one JSON object each, on standard error; standard output
 * belongs to people. A process that is killed may lose the calls of the turn of
 * the event loop that it was in; warnings and errors are written at once.
 */
export function createLog(level: string): Log {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp,
    formatters: { level: (label) => ({ level: label }) },
  };
  const flat = pino(options, { write: gather });
  const redacting = pino({ ...options, redact: REDACTED }, { write: gather });
  // Every redacted path begins inside a fact. A line of plain values, as each call leaves one, has no such
  // inside, and looking for one in each value would cost more than writing it.
  const loggerOf = (facts: object) => (Object.values(facts).some(isObject) ? redacting : flat);
  return {
    info: (facts, message) => loggerOf(facts).info(facts, message),
    warn(facts, message) {
      loggerOf(facts).warn(facts, message);
      flushLog();
    },
    error(facts, message) {
      loggerOf(facts).error(facts, message);
      flushLog();
    },
  };
}

let instant = 0;
let instantText = "";

/** The time as pino takes it. Under load many lines are of the same millisecond. */
function timestamp(): string {
  const now = Date.now();
  if (now !== instant) {
    instant = now;
    instantText = `,"time":"${new Date(now).toISOString()}"`;
  }
  return instantText;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}
