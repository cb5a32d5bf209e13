import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Choice of an environment's repository. It is kept, since work can change the file afterwards. */
export interface ImageChoice {
  /** Empty where it said nothing. */
  readonly image: string;
  readonly isBuilt: boolean;
}

const FILE = "image.json";

/**
 * Returns the choice that is kept in a workspace; undefined where nothing was chosen yet.
 *
 * @throws Error for any other problem: the repository must not be read again, since work may have changed it
 */
export async function chosenImageIn(workspaceFolder: string): Promise<ImageChoice | undefined> {
  try {
    return JSON.parse(await readFile(join(workspaceFolder, FILE), "utf8"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A file in the place of a workspace is none.
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Keeps a choice in a workspace. */
export async function keepChosenImage(workspaceFolder: string, choice: ImageChoice): Promise<void> {
  const file = join(workspaceFolder, FILE);
  await writeFile(`${file}.draft`, JSON.stringify(choice), { mode: 0o600 });
  await rename(`${file}.draft`, file);
}
