import { opendirSync } from "node:fs";
import { join } from "node:path";

/** Maximum number of files and folders of a small tree. Synchronous work on more would block the runner. */
const MAX_PATHS = 400;

/**
 * Returns the paths of a folder and of everything in it, or undefined if the tree is not small or cannot be read. Works
 * synchronously, since promises would take longer than the calls themselves.
 */
export function pathsOfSmallTree(folder: string): readonly string[] | undefined {
  const paths = [folder];
  const folders = [folder];
  try {
    // The loop also visits the folders that it adds.
    for (const each of folders) {
      const entries = opendirSync(each);
      try {
        for (let entry = entries.readSync(); entry; entry = entries.readSync()) {
          const path = join(each, entry.name);
          if (paths.push(path) > MAX_PATHS) return undefined;
          if (entry.isDirectory()) folders.push(path);
        }
      } finally {
        entries.closeSync();
      }
    }
    return paths;
  } catch {
    return undefined;
  }
}
