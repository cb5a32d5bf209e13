import { lstatSync, realpathSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { WorkFailure } from "../protocol/work-failure.ts";

/**
 * The absolute path of what `path` names inside the folder `root`, symbolic
 * links followed. It need not be there yet. The answer holds as long as nobody
 * changes the tree.
 *
 * @param path relative, with `/`; "" and "." are the folder itself
 * @throws WorkFailure path_refused for an absolute path, one with `..`, one
 *   into `.git`, and one that a symbolic link leads out of the folder or to
 *   nothing
 */
export function pathInside(root: string, path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (isAbsolute(path) || path.includes("\0") || segments.includes("..")) {
    throw refused(path, "must be relative and without `..`");
  }
  if (segments.some((segment) => segment.toLowerCase() === ".git")) throw refused(path, "leads into .git");
  const realRoot = realpathSync(root);
  let current = realRoot;
  for (const segment of segments) {
    current = followed(join(current, segment), path);
    const fromRoot = relative(realRoot, current);
    if (fromRoot === ".." || fromRoot.startsWith(`..${sep}`)) {
      throw refused(path, "leaves the folder by a symbolic link");
    }
  }
  return current;
}

/** Where a path really is, when it is a symbolic link; what is not there is where it will be. */
function followed(file: string, path: string): string {
  try {
    if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return file;
    return realpathSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A file in the place of a folder: whoever opens the path finds nothing.
    if (code === "ENOTDIR") return file;
    throw refused(path, `goes through a symbolic link that leads to nothing, or is too long (${code})`);
  }
}

function refused(path: string, why: string): WorkFailure {
  return new WorkFailure(
    "path_refused",
    `the path ${JSON.stringify(path)} ${why}: name one inside the repository`,
  );
}
