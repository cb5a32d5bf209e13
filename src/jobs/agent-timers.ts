import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { fireInterest } from "../services/agent/agent-wake.ts";
import { findDueTimers } from "../store/agent/agent-interest.ts";
import { type Store, SYSTEM, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** The precision of the timers of agent executions. */
const EVERY_MS = 1_000;

/** Number of timers read at a time. */
const TIMERS_PER_BATCH = 100;

/**
 * Wakes the agent executions whose timers are due. Each timer is fired and removed
 * in one transaction, so that it fires exactly once or remains due.
 *
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of the failures, after all other timers have fired
 */
export async function fireAgentTimers(store: Store, now: number): Promise<void> {
  for (;;) {
    const due = await findDueTimers(store.reader, now, TIMERS_PER_BATCH);
    const fired = await Promise.allSettled(
      due.map(({ organizationId, ...name }) =>
        store.write(
          SYSTEM,
          "job/agent-timers",
          (tx) => {
            const payload = { case: "timer", value: { firedAt: timestampFromMs(tx.now) } } as const;
            return fireInterest(tx, { organizationId }, name, payload);
          },
          within({ organizationId }),
        ),
      ),
    );
    const failures = fired.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "timers of agent runs did not fire");
    if (due.length < TIMERS_PER_BATCH) return;
  }
}

/** Fires the timers of agent executions. */
export const agentTimersJob: JobFactory = ({ store, now }) => ({
  name: "agent-timers",
  everyMs: EVERY_MS,
  run: () => fireAgentTimers(store, now()),
});
