import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { fireInterest } from "../services/agent/agent-wake.ts";
import { expireApproval } from "../services/approval/approval-end.ts";
import { findDueTimers } from "../store/agent/agent-interest.ts";
import { findExpiredApprovals } from "../store/approval/approval.ts";
import { type Store, SYSTEM, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** The precision of the timers of agent executions, and of the ends of approvals. */
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

/** Number of approvals read at a time. */
const APPROVALS_PER_BATCH = 100;

/**
 * Expires the approvals that nobody has decided in time. Each is expired, and the asker is told,
 * in one transaction, so that it happens exactly once.
 *
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of the failures, after all others have expired
 */
export async function expireApprovals(store: Store, now: number): Promise<void> {
  for (;;) {
    const due = await findExpiredApprovals(store.reader, now, APPROVALS_PER_BATCH);
    const expired = await Promise.allSettled(
      due.map(({ id, organizationId }) => {
        const scope = { organizationId };
        return store.write(
          SYSTEM,
          "job/approval-expiry",
          (tx) => expireApproval(tx, scope, id),
          within(scope),
        );
      }),
    );
    const failures = expired.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "approvals did not expire");
    if (due.length < APPROVALS_PER_BATCH) return;
  }
}

/** Expires approvals. */
export const approvalExpiryJob: JobFactory = ({ store, now }) => ({
  name: "approval-expiry",
  everyMs: EVERY_MS,
  run: () => expireApprovals(store, now()),
});
