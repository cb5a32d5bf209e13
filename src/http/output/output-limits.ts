/** How much of produced answers may wait for slow readers; sizes in bytes, times in milliseconds. */
export interface OutputLimits {
  /** On one connection. Beyond it, and beyond the next two, calls wait before they read anything. */
  readonly connectionBytes: number;
  /** Of one caller on all of its connections. */
  readonly callerBytes: number;
  /** Of all callers. Beyond it the slowest connection is closed. */
  readonly totalBytes: number;
  /** How long an answer may wait without its reader taking anything before it is cut. */
  readonly stallMs: number;
}

const MIB = 2 ** 20;

/** Sizes as settings write them. */
export interface OutputSettings {
  /** In MiB. */
  readonly outputPerConnection: number;
  /** In MiB. */
  readonly outputPerCaller: number;
  /** In MiB. */
  readonly outputTotal: number;
  /** In seconds. */
  readonly slowReaderTimeout: number;
}

/** The limits that the settings name. */
export function outputLimits(settings: OutputSettings): OutputLimits {
  return {
    connectionBytes: settings.outputPerConnection * MIB,
    callerBytes: settings.outputPerCaller * MIB,
    totalBytes: settings.outputTotal * MIB,
    stallMs: settings.slowReaderTimeout * 1_000,
  };
}
