import { pino } from "pino";

/** The log as the parts of the server see it: facts first, then what happened. */
export interface Log {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Structured lines, one JSON object each, on standard error; standard output belongs to people. */
export function createLog(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Nothing puts a header into a line today; should anything ever, the credential is not in it.
      redact: ["*.authorization", "*.headers.authorization", "*.token.value", "*.secret"],
    },
    pino.destination({ dest: 2, sync: true }),
  );
}
