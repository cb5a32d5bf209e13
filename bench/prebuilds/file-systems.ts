import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../test/harness/server.ts";

/** A file system for the bench, in an image file. */
export interface FileSystem {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
}

export const FILE_SYSTEMS: readonly FileSystem[] = [
  { name: "btrfs, reflinks", program: "mkfs.btrfs", args: ["--quiet"] },
  { name: "xfs, reflinks", program: "mkfs.xfs", args: ["-q", "-m", "reflink=1"] },
  { name: "xfs, no reflinks", program: "mkfs.xfs", args: ["-q", "-m", "reflink=0"] },
];

/** Enough for four copies without reflinks. */
const IMAGE_BYTES = 8 * 2 ** 30;

/** Returns what the machine lacks for the bench, with instructions to install it. */
export function missingForFileSystems(): string[] {
  const lacks = process.getuid?.() === 0 ? [] : ["the right to mount file systems: run it as root"];
  for (const { program } of FILE_SYSTEMS) {
    try {
      execFileSync(program, ["-V"], { stdio: "pipe" });
    } catch {
      lacks.push(
        `${program}: install Debian's package ${program === "mkfs.xfs" ? "xfsprogs" : "btrfs-progs"}`,
      );
    }
  }
  return [...new Set(lacks)];
}

/** Mounts a new file system for the duration of `use`. */
export function withFileSystem<T>({ program, args }: FileSystem, use: (folder: string) => T): T {
  const place = temporaryFolder();
  const [image, folder] = [join(place, "image"), join(place, "mounted")];
  writeFileSync(image, "");
  truncateSync(image, IMAGE_BYTES);
  mkdirSync(folder);
  execFileSync(program, [...args, image], { stdio: "pipe" });
  execFileSync("mount", ["-o", "loop", image, folder]);
  try {
    return use(folder);
  } finally {
    execFileSync("umount", [folder]);
    rmSync(place, { recursive: true });
  }
}
