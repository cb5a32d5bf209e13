import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./server.ts";

/** The disk of a process: slow, or failing on request. */
export interface SlowDisk {
  /** Environment variables of the process. */
  readonly env: Readonly<Record<string, string>>;
  /** Makes every later force of files whose path ends like this fail. */
  failFor(pathEnd: string): void;
  /** Makes only the next such force fail. */
  failOnceFor(pathEnd: string): void;
  restore(): void;
}

/**
 * Makes a disk whose forces each take this much longer.
 *
 * @returns undefined where there is no C compiler, or the loader does not preload libraries
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
    failFor: (pathEnd) => writeFileSync(broken, `*${pathEnd}`),
    failOnceFor: (pathEnd) => writeFileSync(broken, `1${pathEnd}`),
    restore: () => rmSync(broken, { force: true }),
  };
}
