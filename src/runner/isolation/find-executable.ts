import { accessSync, constants } from "node:fs";
import { join } from "node:path";

/**
 * The folders of the system's programs. PATH is not used because these programs run as the runner's user, outside the
 * work's isolation.
 */
export const PROGRAM_FOLDERS = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];

/** Returns the path of a program in the first folder that contains it. */
export function findExecutable(name: string, folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
