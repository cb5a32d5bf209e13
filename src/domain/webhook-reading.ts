import { type PullRequestDelivery, readPullRequestDelivery } from "./pull-request-event.ts";
import { readWebhookParameters } from "./webhook-body.ts";

/**
 * What a delivery asks of a workflow. `problem`: it means to start it, and
 * cannot; `nothing`: it means no start. Both texts are safe to show.
 */
export type WebhookReading =
  | { readonly kind: "pull_request"; readonly delivery: PullRequestDelivery }
  | { readonly kind: "parameters"; readonly parameters: Readonly<Record<string, string>> }
  | { readonly kind: "problem"; readonly problem: string }
  | { readonly kind: "nothing"; readonly reason: string };

/** Why a delivery that asks for nothing starts nothing. */
export const NOTHING_ASKED =
  'the delivery is no event of a pull request, and its body has no "parameters": send {"parameters": {}} to run the manual trigger';

/** The headers by which source-control hosts name an event. */
const EVENT_HEADERS = ["x-github-event", "x-gitlab-event"] as const;

/**
 * Reads a delivery that proved whom it comes from: an event of a pull request,
 * or else the parameters that its body carries.
 *
 * @param headers by lower-case name
 * @param body the raw body
 */
export function readWebhook(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
): WebhookReading {
  const event = readPullRequestDelivery(headers, body);
  if (event.delivery) return { kind: "pull_request", delivery: event.delivery };
  const asked = readWebhookParameters(body);
  if ("parameters" in asked) return { kind: "parameters", parameters: asked.parameters };
  if ("problem" in asked) return { kind: "problem", problem: asked.problem };
  const isEvent = EVENT_HEADERS.some((name) => headers[name] !== undefined);
  return { kind: "nothing", reason: isEvent ? event.reason : NOTHING_ASKED };
}
