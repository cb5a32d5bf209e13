import { createHash } from "node:crypto";
import { readFile, statfs } from "node:fs/promises";
import { readSecrets } from "./key-file.ts";
import { type Keys, keysFrom } from "./keys.ts";
import type { Problem } from "./rpc/health.ts";

/** A condition of the machine that the operator should know of, and with which the server still works. */
export interface Warning {
  readonly check: "audit export";
  /** One sentence for the operator; everybody who reaches the server may read it. */
  readonly reason: string;
}

/** Looks after which warnings are asked for again. */
const WARN_EVERY = 10;

/** Checks of what a server needs of its machine in addition to the database, repeated at an interval. */
export interface MachineChecks {
  /** Looks at the disk and at the key file. Never rejects. */
  look(): Promise<void>;
  /** Returns what the last look found wrong. */
  problems(): readonly Problem[];
  /** Returns what the operator should know, and what keeps the server from nothing. */
  warnings(): readonly Warning[];
}

export interface MachineCheckOptions {
  /** The folder on whose disk the database grows; undefined where it is on another machine. */
  readonly dataDir: string | undefined;
  /** Bytes that have to be free on that disk; 0 for no floor. */
  readonly diskFloorBytes: number;
  readonly keyFile: string;
  /** Returns what is to be warned of; asked every tenth look. */
  readonly warn?: () => Promise<readonly Warning[]>;
  /** The keys that the server holds. */
  readonly keys: Pick<Keys, "ids">;
}

/** Creates the checks of a server's machine; none has been made yet. */
export function createMachineChecks(options: MachineCheckOptions): MachineChecks {
  let found: readonly Problem[] = [];
  let warnings: readonly Warning[] = [];
  let looks = 0;
  const keyCheck = createKeyCheck(options);
  return {
    async look() {
      const reasons = await Promise.all([diskProblem(options), keyCheck()]);
      const [disk, keys] = reasons;
      found = [
        ...(disk === undefined ? [] : [{ check: "disk", reason: disk } as const]),
        ...(keys === undefined ? [] : [{ check: "keys", reason: keys } as const]),
      ];
      // Last, since the others do not wait for the database, whose own check tells that it does not answer.
      if (options.warn && looks++ % WARN_EVERY === 0) warnings = await options.warn().catch(() => warnings);
    },
    problems: () => found,
    warnings: () => warnings,
  };
}

const MIB = 1024 * 1024;

/** Returns why the disk of a data folder is too full; undefined while it is not. */
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
 * Creates the function that returns why the server's keys would not be there at its next start. The keys
 * are parsed only when the file has changed.
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
