import { existsSync, rmdirSync } from "node:fs";
import { removeDraft } from "../../store/sqlite/backup.ts";

/**
 * Makes SIGINT and SIGTERM run this work, print the sentence that it returns on standard error, and end the process,
 * until the returned function is called.
 */
export type WhenInterrupted = (cleanUp: () => string) => () => void;

/** The message that an interrupted command has left nothing. */
export const NOTHING_WRITTEN = "interrupted: nothing was written";

/**
 * Runs work that writes a new file through a draft. An interrupt removes the draft.
 * @param madeFolders folders created for the file, each before those in it; an interrupt removes them too
 */
export async function removingDraft<T>(
  file: string,
  whenInterrupted: WhenInterrupted | undefined,
  work: () => Promise<T>,
  madeFolders: readonly string[] = [],
): Promise<T> {
  const allowInterrupts = whenInterrupted?.(() => {
    removeDraft(file);
    if (existsSync(file)) return `interrupted: ${file} is written and complete`;
    for (const folder of madeFolders.toReversed()) removeEmpty(folder);
    return NOTHING_WRITTEN;
  });
  try {
    return await work();
  } finally {
    allowInterrupts?.();
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Another process has put a file into it.
  }
}
