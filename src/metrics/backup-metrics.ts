import { newestCopy } from "../domain/record/backup-copies.ts";
import type { Metric } from "./metric.ts";

/**
 * Returns a metric source for the age of the last good backup, based on the names in the backup folder. Without a
 * backup the age is that of 1970, so that an alert rule fires.
 *
 * @param list returns the names in the folder; an error counts as an empty folder
 * @param now milliseconds since 1970 UTC
 */
export function backupMetrics(
  list: () => Promise<readonly string[]>,
  now: () => number,
): () => Promise<readonly Metric[]> {
  return async () => {
    const newest = newestCopy(await list().catch(() => [])) ?? 0;
    return [
      {
        name: "chartroom.backup.age",
        help: "Age of the newest good copy in --backup-folder; that of 1970 while there is none.",
        unit: "s",
        kind: "gauge",
        values: [[{}, Math.max(0, now() - newest) / 1000]],
      },
    ];
  };
}
