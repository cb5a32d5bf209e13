import { toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import {
  type EventDelivery,
  EventDeliverySchema,
  EventDeliveryState,
  EventDeliveryVerdict,
  EventFormat,
  type EventSubscription,
  EventSubscriptionSchema,
  EventSubscriptionState,
} from "#gen/service/v1/event_subscription_pb.js";
import { EventSubscriptionService } from "#gen/service/v1/event_subscription_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { table } from "../terminal/table.ts";
import { call, keyedCall, readPages } from "./call.ts";
import { enumWords, jsonText, printable, timeOf } from "./printable.ts";
import type { ServerAccess } from "./server-access.ts";

const subscriptionsOf = ({ server }: ServerAccess) =>
  createClient(EventSubscriptionService, createHttpTransport(server));

/** Returns the webhooks of the organization. @throws StartError */
export function listWebhooks(access: ServerAccess, limit: number): Promise<EventSubscription[]> {
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      subscriptionsOf(access).listEventSubscriptions({ pagination }, options),
    );
    return { elements: page.eventSubscriptions, pagination: page.pagination };
  });
}

/** Returns webhooks as a table for people. */
export function webhookTable(webhooks: readonly EventSubscription[], maxWidth?: number): string {
  if (webhooks.length === 0) return "no webhooks: chartroom webhook create NAME --event KIND makes one\n";
  const rows = webhooks.map(({ id, state, failingSince, target, name, eventKinds }) => [
    id,
    enumWords(EventSubscriptionState[state]),
    failingSince ? timeOf(failingSince) : "",
    target,
    name,
    eventKinds.join(" "),
  ]);
  return table(["WEBHOOK", "STATE", "FAILING SINCE (UTC)", "TARGET", "NAME", "EVENTS"], rows, maxWidth);
}

/** Returns webhooks as a JSON list. */
export function webhooksJson(webhooks: readonly EventSubscription[]): string {
  return jsonText(webhooks.map((each) => toJson(EventSubscriptionSchema, each)));
}

/** A webhook to create. */
export interface NewWebhook {
  readonly name: string;
  readonly url: string;
  readonly eventKinds: readonly string[];
  readonly isChat: boolean;
}

/** A webhook and the secret that signs its deliveries, which is shown once. */
export interface WebhookSecret {
  readonly eventSubscriptionId: string;
  readonly secret: string;
}

/** Creates a webhook. @throws StartError */
export async function createWebhook(
  access: ServerAccess,
  { name, url, eventKinds, isChat }: NewWebhook,
): Promise<WebhookSecret> {
  const format = isChat ? EventFormat.CHAT_TEXT : EventFormat.STANDARD;
  const request = { name, url, eventKinds: [...eventKinds], format };
  const { eventSubscription, secret } = await keyedCall(access, (options) =>
    subscriptionsOf(access).createEventSubscription(request, options),
  );
  return { eventSubscriptionId: eventSubscription?.id ?? "", secret };
}

/** Replaces the secret of a webhook. @throws StartError */
export async function rotateWebhookSecret(
  access: ServerAccess,
  eventSubscriptionId: string,
): Promise<WebhookSecret> {
  const { secret } = await keyedCall(access, (options) =>
    subscriptionsOf(access).rotateEventSubscriptionSecret({ eventSubscriptionId }, options),
  );
  return { eventSubscriptionId, secret };
}

/** Pauses or resumes a webhook. @throws StartError */
export async function pauseWebhook(
  access: ServerAccess,
  eventSubscriptionId: string,
  paused: boolean,
): Promise<void> {
  await call(access, (options) =>
    subscriptionsOf(access).updateEventSubscription({ eventSubscriptionId, paused }, options),
  );
}

/** Deletes a webhook with the record of its deliveries. @throws StartError */
export async function deleteWebhook(access: ServerAccess, eventSubscriptionId: string): Promise<void> {
  await call(access, (options) =>
    subscriptionsOf(access).deleteEventSubscription({ eventSubscriptionId }, options),
  );
}

/** The states of deliveries by name on the command line. */
const DELIVERY_STATES = {
  pending: EventDeliveryState.PENDING,
  delivered: EventDeliveryState.DELIVERED,
  failed: EventDeliveryState.FAILED,
  redelivering: EventDeliveryState.REDELIVERING,
} as const;
export type DeliveryStateName = keyof typeof DELIVERY_STATES;

/** Returns the deliveries of a webhook, newest first. @throws StartError */
export function listDeliveries(
  access: ServerAccess,
  eventSubscriptionId: string,
  { states, limit }: { readonly states: readonly DeliveryStateName[]; readonly limit: number },
): Promise<EventDelivery[]> {
  const filter = { states: states.map((state) => DELIVERY_STATES[state]) };
  return readPages(limit, async (pagination) => {
    const page = await call(access, (options) =>
      subscriptionsOf(access).listEventDeliveries({ eventSubscriptionId, filter, pagination }, options),
    );
    return { elements: page.eventDeliveries, pagination: page.pagination };
  });
}

/** Returns deliveries as a table for people. */
export function deliveryTable(deliveries: readonly EventDelivery[], maxWidth?: number): string {
  if (deliveries.length === 0) return "no deliveries\n";
  const rows = deliveries.map(({ id, happenedAt, state, attempts, eventKind, resourceId }) => {
    const last = attempts.at(-1);
    return [
      id,
      timeOf(happenedAt),
      enumWords(EventDeliveryState[state]),
      String(attempts.length),
      eventKind,
      resourceId,
      last ? `${enumWords(EventDeliveryVerdict[last.verdict])}: ${printable(last.detail)}` : "",
    ];
  });
  return table(
    ["DELIVERY", "HAPPENED (UTC)", "STATE", "ATTEMPTS", "EVENT", "RESOURCE", "LAST ATTEMPT"],
    rows,
    maxWidth,
  );
}

/** Returns deliveries as a JSON list. */
export function deliveriesJson(deliveries: readonly EventDelivery[]): string {
  return jsonText(deliveries.map((each) => toJson(EventDeliverySchema, each)));
}

/** Sends an event again. @throws StartError */
export async function redeliver(access: ServerAccess, eventDeliveryId: string): Promise<void> {
  await call(access, (options) => subscriptionsOf(access).redeliverEvent({ eventDeliveryId }, options));
}
