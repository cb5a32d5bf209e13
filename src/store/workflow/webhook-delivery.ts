import { prepared } from "../prepared.ts";
import { builderOf } from "../query-builder.ts";
import type { Handle, Reader, Scope, WriteTransaction } from "../store.ts";
import type { WebhookDeliveryTable } from "./workflow-schema.ts";

/**
 * The key of a delivery: the workflow that it was posted to, and the id that its sender gave it.
 */
export interface DeliveryKey {
  readonly workflowId: Handle<"workflow">;
  readonly deliveryId: string;
}

const selectDelivery = prepared<DeliveryKey & { since: number }, { event_ids: string }>(
  (db, { workflowId, deliveryId, since }) =>
    db
      .selectFrom("webhook_delivery")
      .select("event_ids")
      .where("workflow_id", "=", workflowId)
      .where("delivery_id", "=", deliveryId)
      .where("at", ">", since),
);

/**
 * Returns the ids of the ledger entries that a delivery created when it first arrived; undefined
 * when it did not arrive, or not after `since` (milliseconds since 1970 UTC).
 */
export async function findDeliveryEvents(
  db: Reader,
  name: DeliveryKey,
  since: number,
): Promise<readonly string[] | undefined> {
  const [row] = await selectDelivery(db, { ...name, since });
  return row && JSON.parse(row.event_ids);
}

const upsertDelivery = prepared<WebhookDeliveryTable, unknown>((db, row) =>
  db
    .insertInto("webhook_delivery")
    .values({
      workflow_id: row.workflow_id,
      delivery_id: row.delivery_id,
      at: row.at,
      event_ids: row.event_ids,
    })
    // An expired one may not be pruned yet.
    .onConflict((conflict) =>
      conflict.columns(["workflow_id", "delivery_id"]).doUpdateSet((eb) => ({
        at: eb.ref("excluded.at"),
        event_ids: eb.ref("excluded.event_ids"),
      })),
    ),
);

/**
 * Records that a delivery arrived, with the entries that it created. It leaves no audit row: the
 * entries record it.
 */
export async function insertDelivery(
  tx: WriteTransaction,
  { workflowId, deliveryId }: DeliveryKey,
  eventIds: readonly string[],
): Promise<void> {
  await upsertDelivery(tx.db, {
    workflow_id: workflowId,
    delivery_id: deliveryId,
    at: tx.now,
    event_ids: JSON.stringify(eventIds),
  });
}

/** Old deliveries to a workflow, until the time of the newest of them. */
export interface OldDeliveries extends Scope {
  readonly workflowId: string;
  readonly until: number;
}

/**
 * Returns which workflows have some of the `limit` oldest deliveries until `cutoff`, in milliseconds since 1970 UTC. For
 * the system.
 */
export async function findOldDeliveries(db: Reader, cutoff: number, limit: number): Promise<OldDeliveries[]> {
  return builderOf(db)
    .selectFrom((eb) =>
      eb
        .selectFrom("webhook_delivery")
        .select(["workflow_id", "at"])
        .where("at", "<=", cutoff)
        .orderBy("at")
        .limit(limit)
        .as("old"),
    )
    .innerJoin("workflow", "workflow.id", "old.workflow_id")
    .select((eb) => [
      "workflow.organization_id as organizationId",
      "workflow.id as workflowId",
      eb.fn.max<number>("old.at").as("until"),
    ])
    .groupBy(["workflow.organization_id", "workflow.id"])
    .execute();
}

/**
 * Removes the deliveries to a workflow until a time.
 * @returns the number of removed deliveries
 */
export async function removeDeliveries(
  { db }: WriteTransaction,
  { workflowId, until }: OldDeliveries,
): Promise<number> {
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom("webhook_delivery")
    .where("workflow_id", "=", workflowId)
    .where("at", "<=", until)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}
