import { opendirSync } from "node:fs";
import { join } from "node:path";

/** A tree with more files and folders is no small one: what is done with all of them would keep the runner from the rest. */
const MAX_PATHS = 400;

/**
 * Returns the paths of a folder and all that is in it, where that is little; undefined otherwise, and where it cannot be
 * read. Without promises, which would take longer than the calls do.
 */
export function pathsOfSmallTree(folder: string): readonly string[] | undefined {
  const paths = [folder];
  const folders = [folder];
  try {
    // What is added meanwhile is visited, too.
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
