import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./server.ts";

/** The disk of a process that is started with it: one that takes its time, or fails. */
export interface SlowDisk {
  /** For the process's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on the files whose path ends so cannot be forced. */
  breakFor(pathEnd: string): void;
  /** The same for the next force alone. */
  breakOnceFor(pathEnd: string): void;
  mend(): void;
}

/**
 * Makes a disk each force of which takes so much longer than it does by itself.
 *
 * @returns undefined where there is no C compiler, or no loader that takes its work
 */
export function slowDisk(delayMs: number): SlowDisk | undefined {
  const folder = temporaryFolder();
  const library = join(folder, "slow-disk.so");
  const broken = join(folder, "broken");
  const source = join(import.meta.dirname, "slow-disk.c");
  if (process.platform !== "linux") return undefined;
  if (spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]).status !== 0)
    return undefined;
  return {
    env: { LD_PRELOAD: library, SLOW_DISK_MS: String(delayMs), SLOW_DISK_BROKEN: broken },
    breakFor: (pathEnd) => writeFileSync(broken, `*${pathEnd}`),
    breakOnceFor: (pathEnd) => writeFileSync(broken, `1${pathEnd}`),
    mend: () => rmSync(broken, { force: true }),
  };
}
