import { rmdirSync } from "node:fs";
import { removeDraft } from "../../store/sqlite/backup.ts";

/**
 * Makes SIGINT and SIGTERM run this work, print the sentence that it returns on standard error, and end the process. The
 * returned function ends this; it lets interrupts that came during synchronous work take effect first.
 */
export type WhenInterrupted = (cleanUp: () => string) => () => Promise<void>;

/** The message that an interrupted command has left nothing. */
export const NOTHING_WRITTEN = "interrupted: nothing was written";

/** Returns the message that an interrupt came after the work was done. */
export const written = (name: string) => `interrupted: ${name} is written and complete`;

/**
 * Runs work that writes a new file through a draft. An interrupt removes the draft.
 * @param removeMore removes what else was created for the file
 */
export async function removingDraft<T>(
  file: string,
  whenInterrupted: WhenInterrupted | undefined,
  work: () => Promise<T>,
  removeMore?: () => void,
): Promise<T> {
  let isWritten = false;
  const allowInterrupts = whenInterrupted?.(() => {
    if (isWritten) return written(file);
    removeDraft(file);
    removeMore?.();
    return NOTHING_WRITTEN;
  });
  try {
    const result = await work();
    isWritten = true;
    return result;
  } finally {
    await allowInterrupts?.();
  }
}

/** Removes folders that were created, each listed before those in it; keeps one that is no longer empty. */
export function removeEmptyFolders(made: readonly string[]): void {
  for (const folder of made.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      return;
    }
  }
}
