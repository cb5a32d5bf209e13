/** The limits on responses that wait for slow readers; sizes in bytes, times in milliseconds. */
export interface OutputLimits {
  /** Maximum on one connection. Beyond this and the next two limits, calls wait before they read anything. */
  readonly connectionBytes: number;
  /** Maximum of one caller on all of its connections. */
  readonly callerBytes: number;
  /** Maximum of all callers together. Beyond it the slowest connection is closed. */
  readonly totalBytes: number;
  /** Maximum time without progress after which a response is cut off. */
  readonly stallMs: number;
}

const MIB = 2 ** 20;

/** The limits in the units of the settings. */
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

/** Converts the settings to limits. */
export function outputLimits(settings: OutputSettings): OutputLimits {
  return {
    connectionBytes: settings.outputPerConnection * MIB,
    callerBytes: settings.outputPerCaller * MIB,
    totalBytes: settings.outputTotal * MIB,
    stallMs: settings.slowReaderTimeout * 1_000,
  };
}
