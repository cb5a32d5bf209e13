import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { LeaseWorkRequestSchema } from "#gen/runner/v1/work_service_pb.js";
import { askForSlot } from "../services/agent/agent-slot.ts";
import { fireInterest } from "../services/agent/agent-wake.ts";
import { expireApproval } from "../services/approval/approval-end.ts";
import { findClaimantOf } from "../services/runner/wait-for-work.ts";
import { findDueTimers } from "../store/agent/agent-interest.ts";
import { findExpiredApprovals } from "../store/approval/approval.ts";
import { findClaimable } from "../store/runner/claimable-work.ts";
import { findStoredRunner } from "../store/runner/runner-life.ts";
import {
  countHeldAgents,
  findIdleLeases,
  findIdleLeasesOf,
  type IdleLeases,
} from "../store/runner/work-slot.ts";
import { type Reader, type Scope, type Store, SYSTEM, within } from "../store/store.ts";
import type { JobFactory } from "./job.ts";

/** The precision of the timers of agent executions, and of the expiry of approvals. */
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
 * Expires the approvals that nobody has decided in time. Each is expired, and the asker notified,
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

/** Delay that this job adds before input reaches an agent whose runner has no free slot. */
const SLOTS_EVERY_MS = 500;

/** Maximum number of slots of a runner that are requested back per run. */
const SLOTS_PER_RUN = 100;

/** Maximum number of agent executions waiting for a slot of a runner that are examined. */
const MAX_WAITING = 32;

/** The work that occupies a runner's slots for agents. */
const AGENTS = { kinds: [WorkKind.AGENT], agentsWithEnvironment: true };

/**
 * Asks runners to release the slots of agent executions that have waited for input long enough. Where other executions
 * wait for a slot of a full runner, it also asks for the slots of those that have waited longest.
 *
 * @param slotMs time after which a slot is released
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of the failures, after all others were asked for
 */
export async function askForSlots(store: Store, slotMs: number, now: number): Promise<void> {
  const failures: unknown[] = [];
  for (const idle of await findIdleLeases(store.reader)) {
    const scope = { organizationId: idle.organizationId };
    const asking = slotsToAsk(store, idle, now - slotMs, now).then((leaseIds) =>
      Promise.all(
        leaseIds.map((leaseId) =>
          store.write(SYSTEM, "job/agent-slots", (tx) => askForSlot(tx, scope, leaseId), within(scope)),
        ),
      ),
    );
    await asking.catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw new AggregateError(failures, "slots of agent runs were not asked back");
}

/** Returns the leases on agent executions that must end. */
async function slotsToAsk(
  { reader }: Store,
  { organizationId, runnerId, since }: IdleLeases,
  until: number,
  now: number,
): Promise<string[]> {
  const scope = { organizationId };
  const wanted = await countLackingSlots(reader, scope, runnerId, now);
  if (since > until && wanted <= 0) return [];
  const idle = await findIdleLeasesOf(reader, scope, runnerId, SLOTS_PER_RUN);
  return idle.filter(({ idle_since: at }, index) => at <= until || index < wanted).map(({ id }) => id);
}

/** Returns the number of agent executions for which a runner neither has a free slot nor was asked for one. */
async function countLackingSlots(
  reader: Reader,
  scope: Scope,
  runnerId: string,
  now: number,
): Promise<number> {
  const known = await findStoredRunner(reader, scope, runnerId);
  const agentSlots = known?.agentSlots;
  const { apiAgents = false } = known?.runner.status ?? {};
  const wanted = create(LeaseWorkRequestSchema, { ...AGENTS, apiAgents });
  const claimant = agentSlots && (await findClaimantOf(reader, scope, runnerId, wanted));
  if (!claimant) return 0;
  const waiting = (await findClaimable(reader, claimant, now, MAX_WAITING)).length;
  if (waiting === 0) return 0;
  const { held, asked } = await countHeldAgents(reader, scope, runnerId);
  return waiting - Math.max(0, agentSlots - held) - asked;
}

/** Asks for the slots of waiting agents. */
export const agentSlotsJob: JobFactory = ({ store, now, settings }) => ({
  name: "agent-slots",
  everyMs: SLOTS_EVERY_MS,
  run: async () => {
    if (settings.agentSlotTime > 0) await askForSlots(store, settings.agentSlotTime * 1_000, now());
  },
});
