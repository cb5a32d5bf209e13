import { spawnSync } from "node:child_process";
import { test } from "@jest/globals";
import { type SlowDisk, slowDisk } from "./slow-disk.ts";

/** Without root, a namespace of users lets a process mount for itself. */
const UNSHARE = ["unshare", process.getuid?.() === 0 ? "-m" : "-rm"];

/**
 * Returns the beginning of a command line that runs a program with a file system
 * of its own, in memory, mounted on a folder; other processes see the folder as it
 * was, and this one's through `/proc/PID/root`.
 *
 * @param options of the mount, such as `size=8m` or `ro`
 */
export function onOwnDisk(folder: string, options: string): readonly string[] {
  const script = 'mount -t tmpfs -o "$1" tmpfs "$0" && shift && exec "$@"';
  return [...UNSHARE, "sh", "-c", script, folder, options];
}

/** `test` where the machine lets a process mount; elsewhere the test is skipped and its name says why. */
export function testWithOwnDisk(name: string, run: () => Promise<void>): void {
  const [program = "", ...args] = onOwnDisk("/mnt", "size=1m");
  if (spawnSync(program, [...args, "true"]).status === 0) test(name, run);
  else test.skip(`${name} (skipped: no process may mount here)`, run); // Mounting needs a user namespace.
}

/** `test` with a disk that can be told to fail; skipped where that cannot be made, and its name says so. */
export function testWithSlowDisk(name: string, run: (disk: SlowDisk) => Promise<void>): void {
  const disk = slowDisk(0);
  if (disk) test(name, () => run(disk));
  else test.skip(`${name} (skipped: no C compiler or preloading loader)`, () => {}); // The disk is a preloaded C library.
}
