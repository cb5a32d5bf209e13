import { lstatSync, realpathSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { WorkFailure } from "../protocol/work-failure.ts";

/**
 * Returns the absolute path of `path` inside the folder `root`, with symbolic links resolved. The path need not exist
 * yet. The result is valid until somebody changes the tree.
 *
 * @param path relative, with `/`; "" and "." mean the folder itself
 * @throws WorkFailure path_refused for an absolute path, one with `..`, one into `.git`, and one whose symbolic link
 *   is broken or leads out of the folder
 */
export function resolveInside(root: string, path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (isAbsolute(path) || path.includes("\0") || segments.includes("..")) {
    throw pathRefused(path, "must be relative and without `..`");
  }
  if (segments.some((segment) => segment.toLowerCase() === ".git"))
    throw pathRefused(path, "leads into .git");
  const realRoot = realpathSync(root);
  let current = realRoot;
  for (const segment of segments) {
    current = resolveLink(join(current, segment), path);
    const fromRoot = relative(realRoot, current);
    if (fromRoot === ".." || fromRoot.startsWith(`..${sep}`)) {
      throw pathRefused(path, "leaves the folder by a symbolic link");
    }
  }
  return current;
}

/**
 * Requires that a repository's folder is still where it was checked out. Commands can replace it, or a folder above
 * it, with a link that would lead the runner's git to another repository of the machine. Git itself reports a missing
 * folder.
 *
 * @param tree the folder that it was checked out in
 * @throws WorkFailure repository_replaced
 */
export function requireInPlace(tree: string, location: string): void {
  const folder = join(realpathSync(tree), location);
  if (realPathOf(folder) === folder) return;
  throw new WorkFailure("repository_replaced", "the folder of the repository is a link to another one now");
}

/** Returns a path without links, or unchanged when nothing is there. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Resolves a symbolic link; returns a path that does not exist yet unchanged. */
function resolveLink(file: string, path: string): string {
  try {
    if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return file;
    return realpathSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // There is a file instead of a folder: opening the path fails.
    if (code === "ENOTDIR") return file;
    throw pathRefused(path, `goes through a symbolic link that leads to nothing, or is too long (${code})`);
  }
}

function pathRefused(path: string, why: string): WorkFailure {
  return new WorkFailure(
    "path_refused",
    `the path ${JSON.stringify(path)} ${why}: name one inside the repository`,
  );
}
