import { newestCopy } from "../domain/record/backup-copies.ts";
import type { Metric } from "./metric.ts";

/**
 * Returns the source of the age of the last good copy of the data, as the names in the folder of the copies tell it.
 * Where there is none the age is that of 1970, so that a rule about it fires.
 *
 * @param list returns the names in the folder; what it throws counts as an empty one
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
