import { type PullRequestDelivery, parsePullRequestDelivery } from "./pull-request-event.ts";
import { parseWebhookBody } from "./webhook-body.ts";

/**
 * The action that a delivery requests of a workflow. `manual`: a manual start; `problem`: the same,
 * with parameters that cannot be read; `nothing`: a host's event without a pull request;
 * `malformed`: its body is not JSON. The texts are safe to show.
 */
export type ParsedDelivery =
  | { readonly kind: "pull_request"; readonly delivery: PullRequestDelivery }
  | {
      readonly kind: "manual";
      readonly parameters: Readonly<Record<string, string>>;
      /**
       * Value of the body, from which the workflow may take more parameters; undefined without a
       * body.
       */
      readonly body: unknown;
      /**
       * In place of the body, for a redelivery: the stored texts by path; null for an absent field.
       */
      readonly fields?: Readonly<Record<string, string | null>>;
    }
  | { readonly kind: "problem"; readonly problem: string }
  | { readonly kind: "nothing"; readonly reason: string }
  | { readonly kind: "malformed"; readonly problem: string };

/** Headers by which source-control hosts name an event. */
const EVENT_HEADERS = ["x-github-event", "x-gitlab-event", "x-gitea-event", "x-forgejo-event"] as const;

/**
 * Parses a verified delivery. One whose headers name a host's event is that event and never a
 * manual start, whatever its body contains; any other body is a manual start.
 * @param headers by lower-case name
 * @param body the raw body
 */
export function parseDelivery(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
): ParsedDelivery {
  if (EVENT_HEADERS.some((name) => headers[name] !== undefined)) return parseEvent(headers, body);
  const requested = parseWebhookBody(body);
  if ("malformed" in requested) return { kind: "malformed", problem: requested.malformed };
  if ("problem" in requested) return { kind: "problem", problem: requested.problem };
  return { kind: "manual", parameters: requested.parameters, body: requested.value };
}

function parseEvent(headers: Readonly<Record<string, string | undefined>>, body: Uint8Array): ParsedDelivery {
  const event = parsePullRequestDelivery(headers, body);
  if (event.delivery) return { kind: "pull_request", delivery: event.delivery };
  return event.isMalformed
    ? { kind: "malformed", problem: event.reason }
    : { kind: "nothing", reason: event.reason };
}
