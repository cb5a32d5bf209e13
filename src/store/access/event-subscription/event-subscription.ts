import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type EventSubscription,
  EventSubscriptionSchema,
  EventSubscriptionState as State,
} from "#gen/service/v1/event_subscription_pb.js";
import { type ListedRow, type PagePosition, positionById } from "../../../domain/page.ts";
import { checkDeadline } from "../../expressions.ts";
import { firstRows, type RowOrder } from "../../first-rows.ts";
import { fromBody, toBody } from "../../json.ts";
import { bodyColumns, listedRows } from "../../listed-row.ts";
import { builderOf } from "../../query-builder.ts";
import type { Found, Reader, Scope, WriteTransaction } from "../../store.ts";
import { UNSENT_STATES } from "./event-delivery.ts";
import type { EventSubscriptionTable } from "./event-subscription-schema.ts";

/** A subscription that was found in the scope of the caller. */
export type FoundSubscription = Found<EventSubscription, "event_subscription">;

/** The encrypted values of a subscription; one key has encrypted all of them. */
export type SealedTarget = Pick<
  EventSubscriptionTable,
  "key_id" | "sealed_url" | "sealed_secret" | "sealed_former" | "former_until"
>;

/** A subscription with its encrypted values and its progress. */
export interface StoredSubscription {
  readonly subscription: FoundSubscription;
  readonly sealed: SealedTarget;
  readonly sequence: number;
  readonly failingSince: number | null;
}

export async function findSubscription(
  db: Reader,
  { organizationId }: Scope,
  id: string,
): Promise<StoredSubscription | undefined> {
  const row = await builderOf(db)
    .selectFrom("event_subscription")
    .selectAll()
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .executeTakeFirst();
  if (!row) return undefined;
  const { key_id, sealed_url, sealed_secret, sealed_former, former_until } = row;
  return {
    subscription: subscriptionOfRow(row),
    sealed: { key_id, sealed_url, sealed_secret, sealed_former, former_until },
    sequence: row.sequence,
    failingSince: row.failing_since,
  };
}

/** Returns up to `limit` subscriptions after `after`, by id ascending. */
export async function findSubscriptionPage(
  db: Reader,
  { organizationId }: Scope,
  after: PagePosition | undefined,
  limit: number,
): Promise<ListedRow<EventSubscription>[]> {
  const own = builderOf(db)
    .selectFrom("event_subscription")
    .select(["id", "sequence", "failing_since", ...bodyColumns("event_subscription")])
    .where(checkDeadline())
    .where("organization_id", "=", organizationId);
  const order: RowOrder = {
    columns: ["event_subscription.id"],
    direction: "asc",
    after: after && [after.id],
  };
  const rows = await firstRows(own, own, order, limit);
  return listedRows(db, "event_subscription", rows, positionById, subscriptionOfRow);
}

/** Returns the number of subscriptions of the scope's organization. */
export async function countSubscriptions(db: Reader, { organizationId }: Scope): Promise<number> {
  const { count } = await builderOf(db)
    .selectFrom("event_subscription")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("organization_id", "=", organizationId)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Returns the number of the newest row of the organization's record, as it was before the write. */
export async function findRecordHead(db: Reader, { organizationId }: Scope): Promise<number> {
  const row = await builderOf(db)
    .selectFrom("organization")
    .select("sequence")
    .where("id", "=", organizationId)
    .executeTakeFirst();
  return row?.sequence ?? 0;
}

/** Adds a subscription to the events after a given number of the record. */
export async function insertEventSubscription(
  tx: WriteTransaction,
  scope: Scope,
  subscription: EventSubscription,
  sealed: SealedTarget,
  sequence: number,
): Promise<void> {
  await builderOf(tx.db)
    .insertInto("event_subscription")
    .values({
      id: subscription.id,
      organization_id: scope.organizationId,
      state: subscription.state,
      sequence,
      due_at: 0,
      failing_since: null,
      ...sealed,
      body: toBody(EventSubscriptionSchema, stored(subscription)),
    })
    .execute();
  tx.record({
    ...changeOf(scope, subscription),
    kind: "created",
    after: masked(subscription, "(url)", "(secret)"),
  });
}

/** Columns that a change of a subscription replaces in addition to its message. */
export interface SubscriptionChange {
  readonly after: EventSubscription;
  readonly sealed?: SealedTarget;
  /** Tells which of the values are new. */
  readonly isNewUrl?: boolean;
  readonly isNewSecret?: boolean;
  readonly reason?: string;
}

/** Changes a subscription; when it becomes active, its failures are reset, and waiting entries keep their time. */
export async function updateSubscription(
  tx: WriteTransaction,
  scope: Scope,
  before: EventSubscription,
  { after, sealed, isNewUrl = false, isNewSecret = false, reason }: SubscriptionChange,
): Promise<void> {
  const isResumed = after.state === State.ACTIVE && before.state !== State.ACTIVE;
  // A new address has not failed yet.
  const isFresh = isResumed || isNewUrl;
  await builderOf(tx.db)
    .updateTable("event_subscription")
    .set({
      state: after.state,
      body: toBody(EventSubscriptionSchema, stored(after)),
      ...sealed,
      ...(isFresh && { due_at: 0, failing_since: null }),
    })
    .where("id", "=", before.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    ...changeOf(scope, after),
    kind: "updated",
    ...(reason !== undefined && { reason }),
    before: masked(before, "(url)", "(secret)"),
    after: masked(after, isNewUrl ? "(new url)" : "(url)", isNewSecret ? "(new secret)" : "(secret)"),
  });
}

/** Removes a subscription with its ledger. */
export async function removeSubscription(
  tx: WriteTransaction,
  scope: Scope,
  subscription: EventSubscription,
): Promise<void> {
  await builderOf(tx.db)
    .deleteFrom("event_delivery")
    .where("subscription_id", "=", subscription.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  await builderOf(tx.db)
    .deleteFrom("event_subscription")
    .where("id", "=", subscription.id)
    .where("organization_id", "=", scope.organizationId)
    .execute();
  tx.record({
    ...changeOf(scope, subscription),
    kind: "deleted",
    before: masked(subscription, "(url)", "(secret)"),
  });
}

/** Progress of a subscription; omitted members do not change. Sending changes no resource, so nothing is recorded. */
export type SubscriptionProgress = Partial<
  Pick<EventSubscriptionTable, "sequence" | "due_at" | "failing_since">
>;

export async function setSubscriptionProgress(
  { db }: WriteTransaction,
  { organizationId }: Scope,
  id: string,
  progress: SubscriptionProgress,
): Promise<void> {
  await builderOf(db)
    .updateTable("event_subscription")
    .set(progress)
    .where("id", "=", id)
    .where("organization_id", "=", organizationId)
    .execute();
}

/** A subscription that may have work to do. */
export interface DueSubscription extends Scope {
  readonly id: string;
}

/**
 * Returns up to `limit` active subscriptions whose organizations have newer events than they have processed, or that
 * have an unsent entry due, the most overdue first.
 */
export async function findDueSubscriptions(
  db: Reader,
  now: number,
  limit: number,
): Promise<DueSubscription[]> {
  return builderOf(db)
    .selectFrom("event_subscription")
    .innerJoin("organization", "organization.id", "event_subscription.organization_id")
    .select(["event_subscription.id", "event_subscription.organization_id as organizationId"])
    .where((eb) => eb("event_subscription.state", "=", eb.lit(State.ACTIVE)))
    .where("event_subscription.due_at", "<=", now)
    .where(({ eb, exists, or, selectFrom }) =>
      or([
        eb("organization.sequence", ">", eb.ref("event_subscription.sequence")),
        exists(
          selectFrom("event_delivery")
            .select("event_delivery.id")
            .whereRef("event_delivery.subscription_id", "=", "event_subscription.id")
            .where((of) =>
              of(
                "event_delivery.state",
                "in",
                UNSENT_STATES.map((state) => of.lit(state)),
              ),
            ),
        ),
      ]),
    )
    .orderBy("event_subscription.due_at")
    .limit(limit)
    .execute();
}

/** Returns up to `limit` subscriptions whose values are encrypted with a key. For the system, so without a scope. */
export async function findSubscriptionsUnderKey(
  db: Reader,
  keyId: string,
  limit: number,
): Promise<(Scope & { readonly id: string; readonly sealed: SealedTarget })[]> {
  const rows = await builderOf(db)
    .selectFrom("event_subscription")
    .select(["id", "organization_id"])
    .select(["key_id", "sealed_url", "sealed_secret", "sealed_former", "former_until"])
    .where("key_id", "=", keyId)
    .limit(limit)
    .execute();
  return rows.map(({ id, organization_id, ...sealed }) => ({ id, organizationId: organization_id, sealed }));
}

/** Stores the same values encrypted with another key. The subscription does not change, so nothing is recorded. */
export async function reencryptSubscription(
  { db }: WriteTransaction,
  id: string,
  sealed: SealedTarget,
): Promise<void> {
  await builderOf(db).updateTable("event_subscription").set(sealed).where("id", "=", id).execute();
}

function changeOf({ organizationId }: Scope, { id, creator }: EventSubscription) {
  const facts = { creatorId: creator?.id ?? null };
  return { organizationId, type: "event_subscription" as const, id, facts };
}

/** Returns what the record shows of a subscription: that there are an address and a secret, and when they are replaced. */
function masked(subscription: EventSubscription, url: string, secret: string): string {
  const body = JSON.parse(toBody(EventSubscriptionSchema, stored(subscription)));
  return JSON.stringify({ ...body, url, secret });
}

/** Returns a subscription without the values that have their own columns. */
function stored({ failingSince: _, ...subscription }: EventSubscription): EventSubscription {
  return { ...subscription, sequence: 0n };
}

function subscriptionOfRow({
  body,
  sequence,
  failing_since,
}: Pick<EventSubscriptionTable, "body" | "sequence" | "failing_since">): FoundSubscription {
  const subscription = fromBody(EventSubscriptionSchema, body);
  subscription.sequence = BigInt(sequence);
  if (failing_since !== null) subscription.failingSince = timestampFromMs(failing_since);
  return subscription as FoundSubscription;
}
