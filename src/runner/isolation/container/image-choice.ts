import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The choice of an environment's repository. It is stored because work can change the file later. */
export interface ImageChoice {
  /** Empty when the repository chose none. */
  readonly image: string;
  readonly isBuilt: boolean;
}

const FILE = "image.json";

/**
 * Returns the stored choice of a workspace; undefined when none has been made.
 *
 * @throws Error for any other problem: the repository must not be read again, since work may have changed it
 */
export async function chosenImageIn(workspaceFolder: string): Promise<ImageChoice | undefined> {
  try {
    return JSON.parse(await readFile(join(workspaceFolder, FILE), "utf8"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A file is not a workspace.
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Stores a choice in a workspace. */
export async function keepChosenImage(workspaceFolder: string, choice: ImageChoice): Promise<void> {
  const file = join(workspaceFolder, FILE);
  await writeFile(`${file}.draft`, JSON.stringify(choice), { mode: 0o600 });
  await rename(`${file}.draft`, file);
}
