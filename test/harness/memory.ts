import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where Linux keeps files in memory. */
const MEMORY = "/dev/shm";
/** As much as the files of a run take at most, several times over. */
const MIN_MEMORY_BYTES = 4 * 1024 ** 3;

/** Names the folder for temporary files on a disk, in a run whose own are in memory. */
export const DISK_VARIABLE = "TEST_DISK";
/** The tests of what is written to a disk, and of disks that fail. */
const ABOUT_DISKS = /\/test\/(store\/.*|e2e\/(backup|failing-disk|full-disk)\.test\.ts)$/;

/** Returns whether the temporary files of a test file stay on a disk. */
export function isAboutDisks(testPath: string): boolean {
  return ABOUT_DISKS.test(testPath);
}

/**
 * Lets the temporary files of a run be in memory where there is room: forcing them to a disk is what tests wait for
 * most. Those of tests that are about disks stay on one.
 */
export function keepInMemory(): void {
  const folder = folderOfRun("run");
  // For other users as well, as the system's own is.
  chmodSync(folder, 0o1777);
  if (!runsPrograms(folder)) {
    rmSync(folder, { recursive: true });
    return;
  }
  process.env[DISK_VARIABLE] = tmpdir();
  process.env.TMPDIR = folder;
}

/** Removes the folder of the run; files that something still writes there are left to the next one. */
export function removeFolderOfRun(): void {
  const { [DISK_VARIABLE]: disk, TMPDIR: folder } = process.env;
  if (disk !== undefined && folder !== undefined)
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/**
 * Returns a new folder for a run of the tests, in memory where there is room, and removes those that ended runs have
 * left. None of the tests in memory takes away what the system has not forced to the disk.
 *
 * @param kind what is kept there, a word
 */
export function folderOfRun(kind: string): string {
  removeStaleFolders(kind);
  return mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), `chartroom-${kind}-${process.pid}-`));
}

/** Returns whether programs run from a folder: some systems mount memory without. */
function runsPrograms(folder: string): boolean {
  const file = join(folder, "program");
  try {
    writeFileSync(file, "#!/bin/sh\n", { mode: 0o700 });
    execFileSync(file);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(file, { force: true });
  }
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY) || process.availableMemory() < MIN_MEMORY_BYTES) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_MEMORY_BYTES;
}

/** Removes what a run has left that was ended before it could. */
function removeStaleFolders(kind: string): void {
  for (const place of [tmpdir(), MEMORY].filter((folder) => existsSync(folder))) {
    for (const name of readdirSync(place)) {
      const [, found, maker] = /^chartroom-([a-z]+)-(\d+)-/.exec(name) ?? [];
      if (found !== kind || isRunning(Number(maker))) continue;
      try {
        rmSync(join(place, name), { recursive: true, force: true, maxRetries: 3 });
      } catch {
        // Another process of the tests removes it, or something still writes there: the next run finds it again.
      }
    }
  }
}

function isRunning(processId: number): boolean {
  try {
    return process.kill(processId, 0);
  } catch (error) {
    // One of another user runs as well.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
