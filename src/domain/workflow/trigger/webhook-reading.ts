import { type PullRequestDelivery, readPullRequestDelivery } from "./pull-request-event.ts";
import { readWebhookParameters } from "./webhook-body.ts";

/**
 * What a delivery asks of a workflow. `manual`: to start it by hand; `problem`:
 * the same, with parameters that cannot be read; `nothing`: a host's event that
 * is none of a pull request; `malformed`: its body is no JSON. The texts are
 * safe to show.
 */
export type WebhookReading =
  | { readonly kind: "pull_request"; readonly delivery: PullRequestDelivery }
  | {
      readonly kind: "manual";
      readonly parameters: Readonly<Record<string, string>>;
      /** Value of the body, of which the workflow may take more parameters; undefined without a body. */
      readonly body: unknown;
      /** In place of the body, for a redelivery: the texts by path that the ledger kept of it; null for an absent field. */
      readonly fields?: Readonly<Record<string, string | null>>;
    }
  | { readonly kind: "problem"; readonly problem: string }
  | { readonly kind: "nothing"; readonly reason: string }
  | { readonly kind: "malformed"; readonly problem: string };

/** The headers by which source-control hosts name an event. */
const EVENT_HEADERS = ["x-github-event", "x-gitlab-event"] as const;

/**
 * Reads a delivery that proved whom it comes from. One whose headers name a
 * host's event is that event and never a start by hand, whatever its body says;
 * any other body is one.
 *
 * @param headers by lower-case name
 * @param body the raw body
 */
export function readWebhook(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
): WebhookReading {
  if (EVENT_HEADERS.some((name) => headers[name] !== undefined)) return readEvent(headers, body);
  const asked = readWebhookParameters(body);
  if ("malformed" in asked) return { kind: "malformed", problem: asked.malformed };
  if ("problem" in asked) return { kind: "problem", problem: asked.problem };
  return { kind: "manual", parameters: asked.parameters, body: asked.value };
}

function readEvent(headers: Readonly<Record<string, string | undefined>>, body: Uint8Array): WebhookReading {
  const event = readPullRequestDelivery(headers, body);
  if (event.delivery) return { kind: "pull_request", delivery: event.delivery };
  return event.isMalformed
    ? { kind: "malformed", problem: event.reason }
    : { kind: "nothing", reason: event.reason };
}
