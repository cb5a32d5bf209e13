import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { type EventDelivery, EventFormat } from "#gen/service/v1/event_subscription_pb.js";
import { HISTORY_PRUNED, resourceName } from "./event-kinds.ts";

/** Pages of the console that show one resource. */
const PAGES: Readonly<Partial<Record<ResourceType, string>>> = {
  [ResourceType.AGENT_EXECUTION]: "agents",
  [ResourceType.APPROVAL]: "approvals",
  [ResourceType.PROJECT]: "projects",
  [ResourceType.WORKFLOW]: "workflows",
  [ResourceType.WORKFLOW_EXECUTION]: "executions",
};

/** Sentences of specific kinds; those of all other kinds are made of the words of the kind. */
const SENTENCES: Readonly<Record<string, string>> = {
  "agent_execution.failed": "An agent run has failed",
  "agent_execution.waits_for_input": "An agent run waits for input",
  "approval.asked": "An approval is asked for",
  "workflow_execution.failed": "An execution of a workflow has failed",
  [HISTORY_PRUNED]: "Events were removed before they could be sent",
};

/** The fields of a delivery that its body contains. */
export type EventToDeliver = Pick<
  EventDelivery,
  "eventKind" | "resourceType" | "resourceId" | "operation" | "sequence" | "happenedAt"
>;

/**
 * Returns the body of a delivery, the same for each attempt. It contains only ids, kinds and times.
 * @param baseUrl URL of the console, without a trailing slash
 */
export function eventBody(
  format: EventFormat,
  event: EventToDeliver,
  { organizationId, baseUrl }: { readonly organizationId: string; readonly baseUrl: string },
): string {
  const url = baseUrl + pageOf(event);
  if (format === EventFormat.CHAT_TEXT) return JSON.stringify({ text: `${sentenceOf(event)}: ${url}` });
  return JSON.stringify({
    type: event.eventKind,
    timestamp: new Date(event.happenedAt ? timestampMs(event.happenedAt) : 0).toISOString(),
    data: {
      organizationId,
      sequence: String(event.sequence),
      operation: ResourceOperation[event.operation].toLowerCase(),
      resourceType: resourceName(event.resourceType),
      resourceId: event.resourceId,
      url,
    },
  });
}

function pageOf({ resourceType, operation, resourceId }: EventToDeliver): string {
  const page = PAGES[resourceType];
  // A removed resource has no page.
  if (page === undefined || operation === ResourceOperation.DELETE) return "/organization?tab=events";
  return `/${page}/${resourceId}`;
}

function sentenceOf({ eventKind }: EventToDeliver): string {
  const [resource = "", done = ""] = eventKind.split(".");
  return SENTENCES[eventKind] ?? `${capital(resource.replaceAll("_", " "))} ${done}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
