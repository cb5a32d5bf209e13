import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { fireInterest } from "../services/agent/agent-wake.ts";
import { findDueTimers } from "../store/agent/agent-interest.ts";
import { type Store, SYSTEM } from "../store/store.ts";
import type { MakeJob } from "./job.ts";

/** Timers of agent executions are exact to this. */
const EVERY_MS = 1_000;

/** Timers that are looked up at a time. */
const TIMERS_A_BATCH = 100;

/**
 * Wakes the runs that wait for a time that has come, each in a write of its own
 * that also takes the timer away: it fires whole, once, or is still due.
 *
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of what failed, once all the others were done
 */
export async function fireAgentTimers(store: Store, now: number): Promise<void> {
  for (;;) {
    const due = await findDueTimers(store.reader, now, TIMERS_A_BATCH);
    const fired = await Promise.allSettled(
      due.map(({ organizationId, ...name }) =>
        store.write(SYSTEM, "job/agent-timers", (tx) => {
          const payload = { case: "timer", value: { firedAt: timestampFromMs(tx.now) } } as const;
          return fireInterest(tx, { organizationId }, name, payload);
        }),
      ),
    );
    const failures = fired.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "timers of agent runs did not fire");
    if (due.length < TIMERS_A_BATCH) return;
  }
}

export const agentTimersJob: MakeJob = ({ store, now }) => ({
  name: "agent-timers",
  everyMs: EVERY_MS,
  run: () => fireAgentTimers(store, now()),
});
