import type { Log } from "../../log.ts";

/** A fetch that takes longer is shown in the log, and again after this time. */
const INTERVAL_MS = 10_000;

/**
 * Returns the function that writes git's lines of progress to the log: now and
 * then one, and none for a fetch that is quick.
 *
 * @param workspace the folder that is filled
 * @param now the time in milliseconds
 */
export function createFetchProgress(
  log: Pick<Log, "info">,
  workspace: string,
  now = () => performance.now(),
): (progress: string) => void {
  let writtenAt = now();
  return (progress) => {
    if (now() - writtenAt < INTERVAL_MS) return;
    writtenAt = now();
    log.info({ workspace, progress }, "a repository is being fetched");
  };
}
