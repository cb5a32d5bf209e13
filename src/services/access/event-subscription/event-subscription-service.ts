import { clone, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { EventDeliverySchema, EventDeliveryState } from "#gen/service/v1/event_subscription_pb.js";
import {
  type EventSubscriptionService as Contract,
  type CreateEventSubscriptionRequest,
  type DeleteEventSubscriptionRequest,
  type GetEventSubscriptionRequest,
  type ListEventDeliveriesRequest,
  ListEventDeliveriesRequest_FilterSchema,
  type ListEventSubscriptionsRequest,
  type RedeliverEventRequest,
  type RotateEventSubscriptionSecretRequest,
  type UpdateEventSubscriptionRequest,
} from "#gen/service/v1/event_subscription_service_pb.js";
import {
  type AllowedHosts,
  newSubscription,
  requireActive,
  requireRoomForSubscription,
  requireSubscriptionsKnown,
  rotatedSubscription,
  updatedSubscription,
} from "../../../domain/access/event-subscription/event-subscription.ts";
import { notFound } from "../../../domain/error.ts";
import {
  findDelivery,
  findDeliveryPage,
  updateDelivery,
} from "../../../store/access/event-subscription/event-delivery.ts";
import {
  countSubscriptions,
  findRecordHead,
  findSubscription,
  findSubscriptionPage,
  insertEventSubscription,
  removeSubscription,
  type StoredSubscription,
  setSubscriptionProgress,
  updateSubscription,
} from "../../../store/access/event-subscription/event-subscription.ts";
import { EVENT_SUBSCRIPTIONS_LEVEL, mayStore } from "../../../store/feature-level.ts";
import type { Reader, Scope } from "../../../store/store.ts";
import { callerOf, writeAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { listPage } from "../../call/page.ts";
import { newSubscriptionSecret, openTarget, sealTarget } from "./subscription-secrets.ts";

/** The dependencies of the service of event subscriptions. */
export interface EventSubscriptionDependencies extends ServiceDependencies {
  /** The hosts that events may be sent to over http or at non-public addresses. */
  readonly eventHosts: AllowedHosts;
}

/** Serves subscriptions, which send an organization's events to external addresses. */
export class EventSubscriptionService implements ServiceImpl<typeof Contract> {
  readonly #deps: EventSubscriptionDependencies;

  constructor(deps: EventSubscriptionDependencies) {
    this.#deps = deps;
  }

  createEventSubscription(req: CreateEventSubscriptionRequest, ctx: HandlerContext) {
    const { store, keys, eventHosts } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      requireSubscriptionsKnown(mayStore(tx, EVENT_SUBSCRIPTIONS_LEVEL));
      const context = { id: tx.newId(), creator: caller.subject, now: tx.now };
      const eventSubscription = newSubscription(req, context, eventHosts);
      requireRoomForSubscription(await countSubscriptions(tx.db, caller));
      const secret = newSubscriptionSecret(keys);
      const sequence = await findRecordHead(tx.db, caller);
      eventSubscription.sequence = BigInt(sequence);
      const sealed = sealTarget(keys, context.id, { url: req.url, secret, former: undefined });
      await insertEventSubscription(tx, caller, eventSubscription, sealed, sequence);
      return { eventSubscription, secret };
    });
  }

  async getEventSubscription({ eventSubscriptionId }: GetEventSubscriptionRequest, ctx: HandlerContext) {
    const { subscription } = await getSubscription(
      this.#deps.store.reader,
      callerOf(ctx),
      eventSubscriptionId,
    );
    return { eventSubscription: subscription };
  }

  async listEventSubscriptions({ pagination }: ListEventSubscriptionsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListEventSubscriptions",
      pagination,
      find: (db, after, limit) => findSubscriptionPage(db, caller, after, limit),
    });
    return { ...page, eventSubscriptions: rows };
  }

  updateEventSubscription(req: UpdateEventSubscriptionRequest, ctx: HandlerContext) {
    const { store, keys, eventHosts } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      const stored = await getSubscription(tx.db, caller, req.eventSubscriptionId);
      const { subscription: before } = stored;
      const after = updatedSubscription(before, req, tx.now, eventHosts);
      if (after === before) return { eventSubscription: before };
      const { url } = req;
      const retargeted = url !== undefined && {
        sealed: sealTarget(keys, before.id, { ...openTarget(keys, before.id, stored.sealed), url }),
        isNewUrl: true,
      };
      await updateSubscription(tx, caller, before, { after, ...retargeted });
      const { subscription } = await getSubscription(tx.db, caller, before.id);
      return { eventSubscription: subscription };
    });
  }

  deleteEventSubscription({ eventSubscriptionId }: DeleteEventSubscriptionRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { subscription } = await getSubscription(tx.db, caller, eventSubscriptionId);
      await removeSubscription(tx, caller, subscription);
      return {};
    });
  }

  rotateEventSubscriptionSecret(
    { eventSubscriptionId }: RotateEventSubscriptionSecretRequest,
    ctx: HandlerContext,
  ) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      const stored = await getSubscription(tx.db, caller, eventSubscriptionId);
      const { id } = stored.subscription;
      const { url, secret: replaced } = openTarget(keys, id, stored.sealed);
      const { until, subscription: after } = rotatedSubscription(stored.subscription, tx.now);
      const secret = newSubscriptionSecret(keys);
      const sealed = sealTarget(keys, id, { url, secret, former: { secret: replaced, until } });
      await updateSubscription(tx, caller, stored.subscription, { after, sealed, isNewSecret: true });
      return { secret, eventSubscription: after };
    });
  }

  async listEventDeliveries(
    { eventSubscriptionId, filter, pagination }: ListEventDeliveriesRequest,
    ctx: HandlerContext,
  ) {
    const caller = callerOf(ctx);
    const { subscription } = await getSubscription(this.#deps.store.reader, caller, eventSubscriptionId);
    const query = { subscriptionId: subscription.id, states: filter?.states ?? [] };
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListEventDeliveries",
      parts: [subscription.id, filter && toJson(ListEventDeliveriesRequest_FilterSchema, filter)],
      pagination,
      find: (db, after, limit) => findDeliveryPage(db, caller, query, after, limit),
    });
    return { ...page, eventDeliveries: rows };
  }

  redeliverEvent({ eventDeliveryId }: RedeliverEventRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const before = await findDelivery(tx.db, caller, eventDeliveryId);
      if (!before) throw notFound("event delivery");
      const { subscription } = await getSubscription(tx.db, caller, before.eventSubscriptionId);
      requireActive(subscription);
      const eventDelivery = clone(EventDeliverySchema, before);
      // A pending delivery keeps its position; only its wait for the next attempt ends.
      if (before.state !== EventDeliveryState.PENDING) eventDelivery.state = EventDeliveryState.REDELIVERING;
      eventDelivery.nextAttemptAt = timestampFromMs(tx.now);
      await updateDelivery(tx, caller, eventDelivery);
      await setSubscriptionProgress(tx, caller, subscription.id, { due_at: 0 });
      return { eventDelivery };
    });
  }
}

/** @throws DomainError NOT_FOUND */
async function getSubscription(db: Reader, scope: Scope, id: string): Promise<StoredSubscription> {
  const stored = await findSubscription(db, scope, id);
  if (!stored) throw notFound("event subscription");
  return stored;
}
