import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  EventFormat,
  type EventSubscription,
  EventSubscriptionSchema,
  EventSubscriptionState as State,
} from "#gen/service/v1/event_subscription_pb.js";
import type {
  CreateEventSubscriptionRequest,
  UpdateEventSubscriptionRequest,
} from "#gen/service/v1/event_subscription_service_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { limitReached, phaseUnsuitable, valueUnusable } from "../../error.ts";
import { requireKnownKinds } from "./event-kinds.ts";

/** Maximum number of subscriptions of an organization (contract, CreateEventSubscription). */
const MAX_SUBSCRIPTIONS = 20;

/** Time for which deliveries are also signed with a replaced secret (contract, RotateEventSubscriptionSecret). */
const OVERLAP_MS = 24 * 3_600_000;

/** The hosts to which the operator allows plain http and addresses that are not public, in lower case with their port. */
export type AllowedHosts = Pick<ReadonlySet<string>, "has">;

/** Returns whether the operator allows the host of an address, written with its port; that of https may be left out. */
export function isAllowedHost({ protocol, host, port }: URL, allowed: AllowedHosts): boolean {
  return allowed.has(host) || (protocol === "https:" && port === "" && allowed.has(`${host}:443`));
}

/** The facts of a new subscription that are not in the request. */
interface Context {
  readonly id: string;
  readonly creator: Subject;
  readonly now: number;
}

/** Returns a new subscription. @throws DomainError VALUE_UNUSABLE */
export function newSubscription(
  { name, url, eventKinds, format }: CreateEventSubscriptionRequest,
  { id, creator, now }: Context,
  allowed: AllowedHosts,
): EventSubscription {
  requireKnownKinds(eventKinds);
  return create(EventSubscriptionSchema, {
    id,
    name,
    target: requireTarget(url, allowed),
    eventKinds,
    format: format || EventFormat.STANDARD,
    state: State.ACTIVE,
    creator,
    createdAt: timestampFromMs(now),
    updatedAt: timestampFromMs(now),
  });
}

/**
 * Returns a subscription after an update; the same object when nothing changes. A request with a URL counts as a change.
 * @throws DomainError VALUE_UNUSABLE
 */
export function updatedSubscription(
  before: EventSubscription,
  { name, url, eventKinds, format, paused }: UpdateEventSubscriptionRequest,
  now: number,
  allowed: AllowedHosts,
): EventSubscription {
  requireKnownKinds(eventKinds);
  const after = clone(EventSubscriptionSchema, before);
  after.name = name ?? before.name;
  if (url !== undefined) after.target = requireTarget(url, allowed);
  if (eventKinds.length > 0) after.eventKinds = eventKinds;
  after.format = format ?? before.format;
  if (paused === false) after.state = State.ACTIVE;
  // A subscription that the server has paused keeps that state, which says why it sends nothing.
  if (paused === true && before.state === State.ACTIVE) after.state = State.PAUSED;
  // Only a part of the URL is in the subscription.
  if (url === undefined && equals(EventSubscriptionSchema, before, after)) return before;
  after.updatedAt = timestampFromMs(now);
  return after;
}

/** Returns a subscription after its secret was replaced, and the time until which the former one is also used. */
export function rotatedSubscription(
  before: EventSubscription,
  now: number,
): { readonly subscription: EventSubscription; readonly until: number } {
  const until = now + OVERLAP_MS;
  const subscription = clone(EventSubscriptionSchema, before);
  subscription.formerSecretUntil = timestampFromMs(until);
  subscription.updatedAt = timestampFromMs(now);
  return { subscription, until };
}

/** Returns a subscription that the server has paused. */
export function pausedByServer(before: EventSubscription, now: number): EventSubscription {
  const after = clone(EventSubscriptionSchema, before);
  after.state = State.PAUSED_BY_SERVER;
  after.updatedAt = timestampFromMs(now);
  return after;
}

/** Requires that an organization may have one more subscription. @throws DomainError LIMIT_REACHED */
export function requireRoomForSubscription(count: number): void {
  if (count < MAX_SUBSCRIPTIONS) return;
  const message = `the organization has ${MAX_SUBSCRIPTIONS} event subscriptions, which is the maximum`;
  throw limitReached("event subscription", MAX_SUBSCRIPTIONS, message);
}

/** Requires that events of a subscription can be sent. @throws DomainError PHASE_UNSUITABLE */
export function requireActive({ state }: EventSubscription): void {
  if (state === State.ACTIVE) return;
  throw phaseUnsuitable(
    "event subscription",
    State[state],
    "the event subscription is paused: resume it, and what waits is sent",
  );
}

/**
 * Requires that every server knows subscriptions; servers of the previous release do not.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireSubscriptionsKnown(isKnown: boolean): void {
  if (isKnown) return;
  throw phaseUnsuitable(
    "installation",
    "UPGRADING",
    "event subscriptions can be made once every server runs this release",
  );
}

/**
 * Returns the origin of an address that events may be sent to.
 * @throws DomainError VALUE_UNUSABLE; the message does not repeat the address, which may contain a credential
 */
export function requireTarget(url: string, allowed: AllowedHosts): string {
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw valueUnusable("url", "url must be an address such as https://hooks.example.org/chartroom");
  if (parsed.username !== "" || parsed.password !== "" || parsed.hash !== "" || url.includes("#"))
    throw valueUnusable("url", "url must have neither a user nor a fragment");
  if (parsed.protocol === "http:" && !isAllowedHost(parsed, allowed))
    throw valueUnusable("url", "url must be https: the operator does not allow http to its host");
  return parsed.origin;
}
