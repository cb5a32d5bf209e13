import { WorkflowTriggerEvent_Source as Source, TriggerVerdict } from "#gen/service/v1/workflow_pb.js";
import { findDueInstant, MAX_MISSED, nextInstant } from "../domain/project/schedule.ts";
import { fireTimeTrigger } from "../services/workflow/trigger/time-trigger.ts";
import { recordTriggerEvent } from "../services/workflow/trigger/trigger-ledger.ts";
import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import { findWorkflow } from "../store/workflow/workflow.ts";
import type { StoredSchedule } from "../store/workflow/workflow-schedule.ts";
import { findDueSchedules, findSchedule, setNextInstant } from "../store/workflow/workflow-schedule.ts";
import type { JobFactory } from "./job.ts";

/** The precision of time triggers. */
const EVERY_MS = 1_000;

/** Number of schedules read at a time. */
const SCHEDULES_PER_BATCH = 100;

/**
 * Fires the time triggers that are due. Each fires in one transaction that also sets
 * when it is due next, so that an instant is done completely or still due. After a
 * downtime, a trigger fires for its latest instant, and the earlier ones are recorded
 * as missed in one entry.
 *
 * @param now milliseconds since 1970 UTC
 * @throws AggregateError of the failures, after all other triggers are done
 */
export async function fireDueTimeTriggers(store: Store, now: number): Promise<void> {
  for (;;) {
    const due = await findDueSchedules(store.reader, now, SCHEDULES_PER_BATCH);
    const fired = await Promise.allSettled(
      due.map((schedule) =>
        store.write(SYSTEM, "job/schedules", (tx) => fireSchedule(tx, schedule), {
          locks: [schedule.organization_id],
        }),
      ),
    );
    const failures = fired.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, "time triggers did not fire");
    // Nothing is due any more if the clock was set back meanwhile.
    const isDone = !fired.some((each) => each.status === "fulfilled" && each.value);
    if (isDone || due.length < SCHEDULES_PER_BATCH) return;
  }
}

/** @returns whether it was due */
async function fireSchedule(tx: WriteTransaction, found: StoredSchedule): Promise<boolean> {
  // Another run or a change of the workflow may have been written first.
  const scope = { organizationId: found.organization_id };
  const schedule = await findSchedule(tx.db, scope, found);
  if (!schedule) return false;
  const { cron_expression: cronExpression, time_zone: timeZone } = schedule;
  const { next_at: nextAt, trigger_index: triggerIndex } = schedule;
  const due = findDueInstant({ cronExpression, timeZone }, nextAt - 1, tx.now);
  if (!due) return false;
  const { instantMs, missed } = due;
  const workflow = await findWorkflow(tx.db, scope, schedule.workflow_id);
  const executor = workflow?.metadata?.executor;
  if (!workflow || !executor) throw new Error(`the schedule of ${schedule.workflow_id} has no workflow`);
  if (missed > 0) {
    await recordTriggerEvent(tx, scope, {
      workflowId: workflow.id,
      source: Source.TIME,
      verdict: TriggerVerdict.MISSED,
      triggerIndex,
      atMs: nextAt,
      reason: missedReason(missed, nextAt, instantMs),
    });
  }
  await fireTimeTrigger(tx, { ...scope, workflow, triggerIndex, instantMs, creator: executor });
  await setNextInstant(tx, scope, schedule, nextInstant({ cronExpression, timeZone }, instantMs));
  return true;
}

function missedReason(missed: number, firstMs: number, latestMs: number): string {
  const count = missed < MAX_MISSED ? `${missed}` : `at least ${missed}`;
  const [first, latest] = [firstMs, latestMs].map((ms) => new Date(ms).toISOString());
  const instants = missed === 1 ? "instant was" : "instants were";
  return `${count} ${instants} missed from ${first} on; that of ${latest} is run instead`;
}

/** Fires time triggers. */
export const timeTriggersJob: JobFactory = ({ store, now }) => ({
  name: "schedules",
  everyMs: EVERY_MS,
  run: () => fireDueTimeTriggers(store, now()),
});
