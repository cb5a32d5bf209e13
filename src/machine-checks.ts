import { createHash } from "node:crypto";
import { readFile, statfs } from "node:fs/promises";
import { readSecrets } from "./key-file.ts";
import { type Keys, keysFrom } from "./keys.ts";
import type { Problem } from "./rpc/health.ts";

/** A condition of the machine that the operator should know about, although the server still works. */
export interface Warning {
  readonly check: "audit export";
  /** One sentence for the operator; everyone who can reach the server may read it. */
  readonly reason: string;
}

/** Number of checks after which the warnings are updated. */
const WARN_EVERY = 10;

/** Checks of the machine that a server needs in addition to the database, repeated at an interval. */
export interface MachineChecks {
  /** Checks the disk and the key file. Never rejects. */
  check(): Promise<void>;
  /** Returns the problems that the last check found. */
  problems(): readonly Problem[];
  /** Returns the conditions that the operator should know about but that do not make the server unready. */
  warnings(): readonly Warning[];
}

export interface MachineCheckOptions {
  /** The folder on whose disk the database grows; undefined when the database is on another machine. */
  readonly dataDir: string | undefined;
  /** Minimum free bytes on that disk; 0 for no minimum. */
  readonly diskFloorBytes: number;
  readonly keyFile: string;
  /** Returns the current warnings; called with every tenth check. */
  readonly warn?: () => Promise<readonly Warning[]>;
  /** The keys that the server holds. */
  readonly keys: Pick<Keys, "ids">;
}

/** Creates the checks of a server's machine; none runs before the first `look`. */
export function createMachineChecks(options: MachineCheckOptions): MachineChecks {
  let found: readonly Problem[] = [];
  let warnings: readonly Warning[] = [];
  let looks = 0;
  const keyCheck = createKeyCheck(options);
  return {
    async check() {
      const reasons = await Promise.all([diskProblem(options), keyCheck()]);
      const [disk, keys] = reasons;
      found = [
        ...(disk === undefined ? [] : [{ check: "disk", reason: disk } as const]),
        ...(keys === undefined ? [] : [{ check: "keys", reason: keys } as const]),
      ];
      // Warnings come last: they wait for the database, whose own check reports when it does not respond.
      if (options.warn && looks++ % WARN_EVERY === 0) warnings = await options.warn().catch(() => warnings);
    },
    problems: () => found,
    warnings: () => warnings,
  };
}

const MIB = 1024 * 1024;

/** Returns the problem of a data folder's disk that is too full; undefined while it is not. */
export async function diskProblem({
  dataDir,
  diskFloorBytes,
}: Pick<MachineCheckOptions, "dataDir" | "diskFloorBytes">): Promise<string | undefined> {
  if (dataDir === undefined || diskFloorBytes === 0) return undefined;
  try {
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    if (free >= diskFloorBytes) return undefined;
    return `the disk of the data folder has ${Math.floor(free / MIB)} MiB left, less than the floor of ${diskFloorBytes / MIB} MiB (--disk-floor)`;
  } catch (error) {
    return `the disk of the data folder cannot be looked at (${codeOf(error)})`;
  }
}

/**
 * Creates the function that returns why the server's keys would be missing at its next start. The key file
 * is parsed only when it has changed.
 */
function createKeyCheck({ keyFile, keys }: MachineCheckOptions): () => Promise<string | undefined> {
  let knownDigest = "";
  let knownProblem: string | undefined;
  return async () => {
    try {
      const bytes = await readFile(keyFile);
      const digest = createHash("sha256").update(bytes).digest("hex");
      if (digest === knownDigest) return knownProblem;
      knownProblem = problemOfKeys(keyFile, keys.ids);
      knownDigest = digest;
      return knownProblem;
    } catch (error) {
      return codeOf(error) === "ENOENT"
        ? "the key file is gone: put it back, as the server does not start without it"
        : `the key file cannot be read (${codeOf(error)}): the server would not start again`;
    }
  };
}

/** @param held ids of the keys that the server holds, newest first */
function problemOfKeys(file: string, held: readonly string[]): string | undefined {
  let ids: readonly string[];
  try {
    ({ ids } = keysFrom(...readSecrets(file)));
  } catch {
    return "the key file holds no keys any more: put back what it held";
  }
  const lost = held.filter((id) => !ids.includes(id));
  if (lost.length > 0)
    return "the key file is not the one that the server started with: put back the keys that it held";
  return ids[0] === held[0] ? undefined : "the key file has a newer key than the server: restart it";
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown";
}
