import { Webhook } from "standardwebhooks";
import { EventDeliveryVerdict as Verdict } from "#gen/service/v1/event_subscription_pb.js";
import type {
  AttemptResult,
  EventSender,
  OutgoingDelivery,
} from "../domain/access/event-subscription/delivery-outcome.ts";
import { type AllowedHosts, isAllowedHost } from "../domain/access/event-subscription/event-subscription.ts";
import type { RequestTraces } from "../domain/trace/request-traces.ts";
import { ScmFailure } from "../scm/failure.ts";
import { sendRequest } from "../scm/host-request.ts";
import { waitMs } from "../scm/response-failure.ts";

/** Limits of a response. Only its status is kept (contract, EventDeliveryVerdict). */
const LIMITS = { timeoutMs: 10_000, responseBytes: 65_536 };

/**
 * Creates the sender of events.
 *
 * @param allowed hosts that may have non-public addresses
 * @param traces takes the spans of deliveries; absent when none are exported
 */
export function createEventSender(
  allowed: AllowedHosts,
  now: () => number,
  traces?: RequestTraces,
): EventSender {
  return {
    async send({ id, url: address, body, secrets, traceparent }, signal) {
      const began = performance.now();
      const passed = () => Math.round(performance.now() - began);
      const url = new URL(address);
      // The operator may have removed the host from the list since the address was accepted.
      const isAllowed = isAllowedHost(url, allowed);
      if (url.protocol !== "https:" && !isAllowed) return refused(url.host, passed());
      const headers = signedHeaders({ id, body, secrets }, now());
      const settings = { allowPrivateAddresses: isAllowed, plainHttpHosts: NO_HOSTS, traces };
      try {
        const message = { url, headers, text: body, traceparent };
        const request = { host: url.host, method: "POST", ...message, signal } as const;
        const { status: statusCode, headers: answered } = await sendRequest(request, settings, LIMITS);
        const isTaken = statusCode >= 200 && statusCode <= 299;
        const verdict = isTaken ? Verdict.ACCEPTED : Verdict.REFUSED;
        const retryAfterMs = waitMs(answered, now());
        return { verdict, statusCode, detail: `answered ${statusCode}`, durationMs: passed(), retryAfterMs };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ScmFailure)) throw error;
        // The message names the host and what happened, but not the rest of the URL.
        return { verdict: verdictOf(error), statusCode: 0, detail: error.message, durationMs: passed() };
      }
    },
  };
}

/**
 * Returns the headers with which a receiver can verify a delivery (Standard Webhooks): one signature per secret.
 *
 * @param at milliseconds since 1970 UTC
 */
export function signedHeaders(
  { id, body, secrets }: Pick<OutgoingDelivery, "id" | "body" | "secrets">,
  at: number,
): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, new Date(at), body));
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at / 1_000)),
    "webhook-signature": signatures.join(" "),
  };
}

function refused(host: string, durationMs: number): AttemptResult {
  const detail = `the url of ${host} is not https: the operator does not allow http to it`;
  return { verdict: Verdict.ADDRESS_REFUSED, statusCode: 0, detail, durationMs };
}

/** The protocol of an address was checked when it was accepted. */
const NO_HOSTS: ReadonlySet<string> = new Set();

function verdictOf({ kind }: ScmFailure): Verdict {
  if (kind === "refused") return Verdict.ADDRESS_REFUSED;
  return kind === "unreadable" ? Verdict.UNREADABLE : Verdict.UNREACHABLE;
}
