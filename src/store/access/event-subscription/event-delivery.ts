import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type EventDelivery,
  EventDeliverySchema,
  EventDeliveryState as State,
} from "#gen/service/v1/event_subscription_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../../domain/page.ts";
import { checkDeadline, isOneOf, octets, unindexed } from "../../expressions.ts";
import { firstRows, type RowOrder } from "../../first-rows.ts";
import { fromBody, toBody } from "../../json.ts";
import { bodyColumns, listedRows } from "../../listed-row.ts";
import { builderOf } from "../../query-builder.ts";
import type { Reader, Scope, WriteTransaction } from "../../store.ts";

/** The states of unsent entries; the condition of the partial index event_delivery_unsent. */
export const UNSENT_STATES = [State.PENDING, State.REDELIVERING] as const;

type UnsentState = (typeof UNSENT_STATES)[number];

export async function findDelivery(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<EventDelivery | undefined> {
  const row = await builderOf(db)
    .selectFrom("event_delivery")
    .select("body")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  return row && fromBody(EventDeliverySchema, row.body);
}

/** Returns up to `limit` entries of a subscription by id descending, before the one with the id of `before`. */
export async function findDeliveryPage(
  db: Reader,
  { organizationId }: Scope,
  { subscriptionId, states }: { readonly subscriptionId: string; readonly states: readonly State[] },
  before: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<EventDelivery>[]> {
  const own = builderOf(db)
    .selectFrom("event_delivery")
    .select(["id", ...bodyColumns("event_delivery")])
    .where(checkDeadline())
    .where("subscription_id", "=", subscriptionId)
    .where("organization_id", "=", organizationId);
  const query = states.length > 0 ? own.where("state", "in", states) : own;
  const order: RowOrder = {
    columns: ["event_delivery.id"],
    direction: "desc",
    after: before && [before.id],
  };
  const rows = await firstRows(own, query, order, limit);
  return listedRows(db, "event_delivery", rows, positionById, ({ body }) =>
    fromBody(EventDeliverySchema, body),
  );
}

/** Returns up to `limit` unsent entries of a subscription, in the order of their events. */
export async function findUnsent(
  db: Reader,
  scope: Scope,
  subscriptionId: string,
  state: UnsentState,
  limit: number,
): Promise<EventDelivery[]> {
  const rows = await unsent(db, scope, subscriptionId, state).select("body").limit(limit).execute();
  return rows.map(({ body }) => fromBody(EventDeliverySchema, body));
}

/** Returns whether a subscription has at least `count` unsent entries. */
export async function hasUnsent(
  db: Reader,
  scope: Scope,
  subscriptionId: string,
  state: UnsentState,
  count: number,
): Promise<boolean> {
  const last = unsent(db, scope, subscriptionId, state)
    .select("id")
    .offset(count - 1)
    .limit(1);
  return (await last.executeTakeFirst()) !== undefined;
}

function unsent(db: Reader, { organizationId }: Scope, subscriptionId: string, state: UnsentState) {
  return (
    builderOf(db)
      .selectFrom("event_delivery")
      .where("subscription_id", "=", subscriptionId)
      .where("organization_id", "=", organizationId)
      // Both states are named so that the database uses the partial index of them.
      .where((eb) =>
        eb(
          "state",
          "in",
          UNSENT_STATES.map((each) => eb.lit(each)),
        ),
      )
      .where("state", "=", state)
      .orderBy("id")
  );
}

/** Adds entries to a ledger. Deliveries are bookkeeping, so nothing is recorded. */
export async function insertDeliveries(
  tx: WriteTransaction,
  { organizationId }: Scope,
  deliveries: readonly EventDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  await builderOf(tx.db)
    .insertInto("event_delivery")
    .values(
      deliveries.map((delivery) => ({
        id: delivery.id,
        organization_id: organizationId,
        subscription_id: delivery.eventSubscriptionId,
        at: tx.now,
        ...changingColumns(delivery),
      })),
    )
    .execute();
}

/** Changes the state and the attempts of an entry; it may have been removed, with its subscription. */
export async function updateDelivery(
  { db }: WriteTransaction,
  { organizationId }: Scope,
  delivery: EventDelivery,
): Promise<void> {
  await builderOf(db)
    .updateTable("event_delivery")
    .set(changingColumns(delivery))
    .where("id", "=", delivery.id)
    .where("organization_id", "=", organizationId)
    .execute();
}

/** Returns the ids of all subscriptions of the scope's organization. */
export async function findLedgerIds(db: Reader, { organizationId }: Scope): Promise<string[]> {
  const rows = await builderOf(db)
    .selectFrom("event_subscription")
    .select("id")
    .where("organization_id", "=", organizationId)
    .orderBy("id")
    .execute();
  return rows.map(({ id }) => id);
}

/** The values of an entry that retention needs. */
export interface AgedDelivery {
  readonly id: string;
  readonly at: number;
  readonly state: number;
  readonly bytes: number;
}

/** Returns up to `limit` entries of a ledger after an id, the oldest first. */
export function findOldestDeliveries(
  db: Reader,
  { organizationId }: Scope,
  subscriptionId: string,
  after: string,
  limit: number,
): Promise<AgedDelivery[]> {
  return builderOf(db)
    .selectFrom("event_delivery")
    .select(["id", "at", "state", octets("event_delivery.body").as("bytes")])
    .where("subscription_id", "=", subscriptionId)
    .where("organization_id", "=", organizationId)
    .where("id", ">", after)
    .orderBy("id")
    .limit(limit)
    .execute();
}

/** Returns the id of the newest entry of a ledger that is not among the `count` newest; undefined for none. */
export async function findPastDeliveryCount(
  db: Reader,
  { organizationId }: Scope,
  subscriptionId: string,
  count: number,
): Promise<string | undefined> {
  const row = await builderOf(db)
    .selectFrom("event_delivery")
    .select("id")
    .where(checkDeadline())
    .where("subscription_id", "=", subscriptionId)
    .where("organization_id", "=", organizationId)
    .orderBy("id", "desc")
    .offset(count)
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Removes entries of an organization, without a record. @returns the number of removed entries */
export async function removeDeliveriesByIds(
  { db }: WriteTransaction,
  { organizationId }: Scope,
  ids: readonly string[],
): Promise<number> {
  const { numDeletedRows } = await builderOf(db)
    .deleteFrom("event_delivery")
    .where(unindexed("event_delivery.organization_id"), "=", organizationId)
    .where(
      isOneOf(
        ["id"],
        ids.map((id) => [id]),
      ),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

function changingColumns(delivery: EventDelivery) {
  return {
    state: delivery.state,
    next_at: delivery.nextAttemptAt ? timestampMs(delivery.nextAttemptAt) : null,
    body: toBody(EventDeliverySchema, delivery),
  };
}
