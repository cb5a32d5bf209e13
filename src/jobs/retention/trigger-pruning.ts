import { DELIVERY_ID_RETENTION_MS } from "../../services/workflow/trigger/webhook-delivery.ts";
import type { Store } from "../../store/store.ts";
import { findOldDeliveries, removeDeliveries } from "../../store/workflow/webhook-delivery.ts";
import type { JobFactory } from "../job.ts";
import { writeInEach } from "../job-writes.ts";
import { BatchSize } from "./batch-size.ts";

const EVERY_MS = 600_000;

/** Maximum number of delivery ids removed at a time: other writes wait for those of their organization. */
const ROWS_PER_BATCH = 1_000;

/**
 * Removes the ids of deliveries that are past their retention. This is bookkeeping, so it leaves no audit row.
 *
 * @param now milliseconds since 1970 UTC
 * @returns the number of ids removed
 */
export async function pruneDeliveries(store: Store, now: number): Promise<number> {
  let removed = 0;
  const size = new BatchSize();
  for (;;) {
    const most = size.of(ROWS_PER_BATCH);
    const found = await findOldDeliveries(store.reader, now - DELIVERY_ID_RETENTION_MS, most);
    const batch = await writeInEach(store, "job/trigger-pruning", found, (tx, { organizationId }) =>
      size.measure(async () => {
        let rows = 0;
        for (const each of found)
          if (each.organizationId === organizationId) rows += await removeDeliveries(tx, each);
        return rows;
      }),
    );
    removed += batch;
    if (batch < most) return removed;
  }
}

/** Removes old delivery ids. */
export const triggerPruningJob: JobFactory = ({ store, now }) => ({
  name: "trigger-pruning",
  everyMs: EVERY_MS,
  run: () => pruneDeliveries(store, now()),
});
