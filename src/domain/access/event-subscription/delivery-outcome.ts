import { EventDeliveryVerdict as Verdict } from "#gen/service/v1/event_subscription_pb.js";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Time from each failed attempt to the next; after the last attempt a delivery has failed. */
export const RETRY_DELAYS_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
];

/** Share of a delay by which it is shortened or extended at random, so that deliveries that failed together are not retried together. */
const JITTER = 0.2;

/** Time without any success after which a subscription is paused. */
export const PAUSE_AFTER_MS = 24 * HOUR_MS;

/** Maximum number of attempts whose results a delivery keeps. */
export const KEPT_ATTEMPTS = 20;

const GONE = 410;

/** The result of an attempt. */
export interface AttemptResult {
  readonly verdict: Verdict;
  /** 0 without an answer. */
  readonly statusCode: number;
  /** Text for people, without anything that the target sent. */
  readonly detail: string;
  readonly durationMs: number;
  /** The wait that the target asks for. */
  readonly retryAfterMs?: number | undefined;
}

/** A delivery as it is sent to a target. Address and secrets must neither be stored nor logged. */
export interface OutgoingDelivery {
  /** The same for each attempt. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  /** The secrets to sign with, the newest first. */
  readonly secrets: readonly string[];
  /** The span of the execution that the event is about; undefined without a trace. */
  readonly traceparent?: string;
}

/** Sends events to external addresses. */
export interface EventSender {
  /**
   * Sends one event and returns the result. Unless the operator allows the host, it is sent only to public addresses,
   * which is checked after the name was resolved. Redirects are not followed.
   *
   * @throws the reason of `signal` when that ended it
   */
  send(delivery: OutgoingDelivery, signal: AbortSignal): Promise<AttemptResult>;
}

/** Returns whether the target has accepted a delivery. */
export const isAccepted = ({ verdict }: Pick<AttemptResult, "verdict">): boolean =>
  verdict === Verdict.ACCEPTED;

/**
 * Returns the time of the next attempt after failed ones, no earlier than the target asks for; undefined after the last.
 * @param failed number of attempts that failed, 1 or more
 * @param random number from 0 to below 1
 */
export function nextAttemptAt(
  failed: number,
  { retryAfterMs = 0 }: Pick<AttemptResult, "retryAfterMs">,
  now: number,
  random: number,
): number | undefined {
  const delay = RETRY_DELAYS_MS[failed - 1];
  if (delay === undefined) return undefined;
  return now + Math.max(retryAfterMs, Math.round(delay * (1 - JITTER + 2 * JITTER * random)));
}

/**
 * Returns why the server pauses a subscription after a failed attempt; undefined when it does not.
 * @param failingSince time of the first failure since the last success
 */
export function pauseReason(
  { statusCode }: Pick<AttemptResult, "statusCode">,
  failingSince: number,
  now: number,
): string | undefined {
  if (statusCode === GONE) return "the target answered that it is gone (410)";
  return now - failingSince >= PAUSE_AFTER_MS ? "the target has accepted nothing for 24 hours" : undefined;
}
