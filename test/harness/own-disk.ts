import { type ChildProcess, spawnSync } from "node:child_process";
import { test } from "@jest/globals";
import { ROOT, testUnless } from "./program.ts";
import { type SlowDisk, slowDisk } from "./slow-disk.ts";

/** Without root, a user namespace lets a process mount file systems. */
const UNSHARE = ["unshare", process.getuid?.() === 0 ? "-m" : "-rm"];

/**
 * Returns the beginning of a command line that runs a program with its own in-memory file system
 * mounted on a folder. Other processes see the original folder, and this one's through
 * `/proc/PID/root`.
 *
 * @param options of the mount, such as `size=8m` or `ro`
 */
export function onOwnDisk(folder: string, options: string): readonly string[] {
  const script = 'mount -t tmpfs -o "$1" tmpfs "$0" && shift && exec "$@"';
  return [...UNSHARE, "sh", "-c", script, folder, options];
}

/** Runs a program that sees the file systems of a process with its own disk. */
export function runBeside({ pid }: Pick<ChildProcess, "pid">, [program = "", ...args]: readonly string[]) {
  const asRoot = process.getuid?.() === 0 ? [] : ["--user", "--preserve-credentials"];
  const enter = ["--target", String(pid), "--mount", ...asRoot, `--wdns=${ROOT}`];
  return spawnSync("nsenter", [...enter, program, ...args], { encoding: "utf8" });
}

/**
 * Defines a test that needs mounts; where the machine does not allow them it is skipped and its
 * name says why.
 */
export function testWithOwnDisk(name: string, run: () => Promise<void>): void {
  const [program = "", ...args] = onOwnDisk("/mnt", "size=1m");
  const mayMount = spawnSync(program, [...args, "true"]).status === 0;
  const define = mayMount ? test : test.skip; // The policy of the kernel, which no package that CI installs can change.
  define(mayMount ? name : `${name} (skipped: no process may mount here)`, run);
}

/** Defines a test with a disk that can be made to fail, which needs a C compiler; see {@link testUnless}. */
export function testWithSlowDisk(name: string, run: (disk: SlowDisk) => Promise<void>): void {
  const disk = slowDisk(0);
  const lack = "there is no C compiler, or no loader that preloads a library";
  testUnless(disk ? undefined : lack)(name, async () => disk && run(disk));
}
