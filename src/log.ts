import { type LoggerOptions, pino } from "pino";

/** The log as other modules use it: fields first, then the message. */
export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Writes whole lines of a log. */
export type WriteLines = (lines: string) => void;

/** A precaution: no line contains headers today, but if one ever does, credentials are redacted. */
const REDACTED = ["*.authorization", "*.headers.authorization", "*.token.value", "*.secret"];

const standardError = pino.destination({ dest: 2, sync: true });
// A failed write, for example on a full disk, must not end the server; the lines are lost.
standardError.on("error", () => {});

/** The lines that are written when this turn of the event loop ends. */
interface Lines {
  add(line: string): void;
  flush(): void;
}

/** Collects lines to write them together: under load a turn has many, and a write costs more than creating a line. */
function collect(write: WriteLines): Lines {
  let pending = "";
  const flush = () => {
    if (pending === "") return;
    const lines = pending;
    pending = "";
    write(lines);
  };
  return {
    add(line) {
      if (pending === "") setImmediate(flush);
      pending += line;
    },
    flush,
  };
}

const ofProcess = collect((lines) => void standardError.write(lines));
const ofFiles: Lines[] = [];

/** Writes the collected lines; to be called when the process ends, so that its last lines are not lost. */
export function flushLog(): void {
  for (const lines of [ofProcess, ...ofFiles]) lines.flush();
}

/** Writes a message to standard error in addition to the log, when the log is in a file. */
export function echoOnStandardError(facts: object, message: string): void {
  createLog("warn").warn(facts, message);
}

/**
 * Creates a log of structured lines, one JSON object each, on standard error;
 * standard output is for people. A process that is killed may lose the lines of its
 * current turn of the event loop, but warnings and errors are written immediately.
 *
 * @param write receives the lines instead of standard error
 * @param isOfProcess true if {@link flushLog} flushes this log; false in a process that runs several servers
 */
export function createLog(level: string, write?: WriteLines, isOfProcess = false): Log {
  const lines = write ? collect(write) : ofProcess;
  if (isOfProcess) ofFiles.push(lines);
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp,
    formatters: { level: (label) => ({ level: label }) },
  };
  const flat = pino(options, { write: lines.add });
  const redacting = pino({ ...options, redact: REDACTED }, { write: lines.add });
  // Redacted paths are always inside an object. A line of plain values, such as that of a call, cannot
  // contain one, and searching it would cost more than writing it.
  const loggerOf = (facts: object) => (Object.values(facts).some(isObject) ? redacting : flat);
  return {
    info: (facts, message) => loggerOf(facts).info(facts, message),
    warn(facts, message) {
      loggerOf(facts).warn(facts, message);
      lines.flush();
    },
    error(facts, message) {
      loggerOf(facts).error(facts, message);
      lines.flush();
    },
  };
}

let instant = 0;
let instantText = "";

/** Returns the time in the form that pino expects. It is cached, since under load many lines share a millisecond. */
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
