import { createHash, randomUUID } from "node:crypto";
import { chmod, lstat, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxPrograms } from "./bubblewrap.ts";

/** How a runner that is root makes a sandbox for another user. */
export interface UserEntry {
  /** The start of a command line that drops root and becomes the user of the work. */
  readonly prefix: readonly string[];
  /** Returns where that user finds a path of the runner. */
  sourceOf(path: string): string;
}

export interface UserEntryOptions {
  readonly programs: SandboxPrograms;
  readonly user: number;
  /** The folder for files that all sandboxes share. */
  readonly folder: string;
  /** The folder for the list of mounts. */
  readonly mountsFolder: string;
  /** The paths that bubblewrap mounts. */
  readonly sources: readonly string[];
}

/**
 * Prepares sandboxes for another user. That user may not be able to enter all folders above a workspace, such as
 * /root. The paths that bubblewrap needs are therefore mounted below /tmp first, in a mount namespace that nothing
 * else sees.
 *
 * No process stays between the runner and bubblewrap: a root process without capabilities could not signal the
 * runner's end to a process of another user.
 */
export async function prepareUserEntry(options: UserEntryOptions): Promise<UserEntry> {
  const { programs, user, folder, mountsFolder, sources } = options;
  const { unshare, mount, setpriv } = programs;
  const targets = join(folder, "targets");
  const names = await Promise.all(sources.map((source, index) => makeTarget(targets, source, index)));
  await chmod(targets, 0o755);
  const lines = sources.map((source, index) => line(source, join(targets, names[index] ?? ""), "bind"));
  // Last, because sources may be in the machine's /tmp.
  const text = [...lines, line(targets, "/tmp", "rbind")].join("");
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const mountsFile = join(mountsFolder, `mounts-${digest}`);
  // Rename atomically: another command of the same work may be reading the file.
  const draft = `${mountsFile}.${randomUUID()}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, mountsFile);
  const found = new Map(sources.map((source, index) => [source, `/tmp/${names[index]}`]));
  return {
    prefix: [
      ...[unshare, "--mount", "--propagation", "private", "--"],
      ...["/bin/sh", "-c", '"$1" --all --fstab "$2" && shift 2 && exec "$@"', "sh", mount, mountsFile],
      ...[setpriv, "--reuid", String(user), "--regid", String(user), "--clear-groups"],
      ...["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"],
    ],
    sourceOf: (path) => found.get(path) ?? path,
  };
}

/** Makes the mount point of a source and returns its name. */
async function makeTarget(targets: string, source: string, index: number): Promise<string> {
  const isFolder = (await lstat(source)).isDirectory();
  const name = `${isFolder ? "folder" : "file"}-${index}`;
  if (isFolder) await mkdir(join(targets, name), { recursive: true });
  else {
    await mkdir(targets, { recursive: true });
    await writeFile(join(targets, name), "");
  }
  return name;
}

function line(from: string, to: string, how: string): string {
  return `${escaped(from)} ${escaped(to)} none ${how} 0 0\n`;
}

/** Escapes a path for fstab(5). */
function escaped(path: string): string {
  return path.replace(/[\s\\#]/g, (each) => `\\${each.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
