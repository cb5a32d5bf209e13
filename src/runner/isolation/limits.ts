import { totalmem } from "node:os";

/** The resource limits of isolated work. */
export interface WorkLimits {
  /** Processes and threads of one command, or of one piece of work if it has a control group. */
  readonly processes: number;
  /** Writable memory of one process, or memory of one piece of work if it has a control group, in bytes. */
  readonly memoryBytes: number;
  /** Processors that one piece of work may use; 0 for all. */
  readonly processors: number;
  /** All files of one environment, without its /tmp, in bytes. */
  readonly diskBytes: number;
  /** The /tmp of one environment, in bytes. */
  readonly tmpBytes: number;
  /** Free disk space below which work is ended, in bytes. */
  readonly freeDiskBytes: number;
}

/** The settings of an operator; sizes are in MiB. */
export interface LimitSettings {
  readonly isolationProcesses: number;
  /** 0 for three quarters of the machine's. */
  readonly isolationMemory: number;
  readonly isolationCpus: number;
  readonly isolationDisk: number;
  readonly isolationTmp: number;
  readonly isolationFreeDisk: number;
}

const MIB = 2 ** 20;

/** Returns the limits that an operator has set. */
export function workLimitsOf(settings: LimitSettings): WorkLimits {
  const {
    isolationProcesses,
    isolationMemory,
    isolationCpus,
    isolationDisk,
    isolationTmp,
    isolationFreeDisk,
  } = settings;
  return {
    processes: isolationProcesses,
    memoryBytes: isolationMemory === 0 ? Math.floor(totalmem() * 0.75) : isolationMemory * MIB,
    processors: isolationCpus,
    diskBytes: isolationDisk * MIB,
    tmpBytes: isolationTmp * MIB,
    freeDiskBytes: isolationFreeDisk * MIB,
  };
}
