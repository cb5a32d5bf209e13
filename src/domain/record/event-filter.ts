import type { ResourceType } from "#gen/service/v1/event_pb.js";
import type {
  WatchEventsRequest,
  WatchEventsRequest_ResourceTypeFilter,
} from "#gen/service/v1/event_service_pb.js";
import { valueUnusable } from "../error.ts";
import type { EventFacts } from "../event-facts.ts";

/** The fields of an event that filters and permissions use. */
export interface EventDescription extends EventFacts {
  readonly resourceType: ResourceType;
  /** Lower-case UUID. */
  readonly resourceId: string;
}

/**
 * Returns whether an event matches a request: it is in the scope, and one of the filters, if there are
 * any, matches it.
 */
export function matchesRequest(
  req: Pick<WatchEventsRequest, "scope" | "resourceTypeFilters">,
  event: EventDescription,
): boolean {
  const { scope, resourceTypeFilters: filters } = req;
  if (scope.case === "environmentId" && event.environmentId !== scope.value) return false;
  return filters.length === 0 || filters.some((filter) => matches(filter, event));
}

/**
 * Returns the number after which a stream begins.
 * @param head number of the newest event
 * @throws DomainError VALUE_UNUSABLE for a number that no event has yet
 */
export function requireReachedEvent(afterSequence: bigint, head: number): number {
  if (afterSequence <= BigInt(head)) return Number(afterSequence);
  throw valueUnusable(
    "afterSequence",
    "afterSequence is higher than the last number of the organization's record",
  );
}

function matches(filter: WatchEventsRequest_ResourceTypeFilter, event: EventDescription): boolean {
  const { resourceType, resourceIds, creatorIds } = filter;
  if (resourceType !== event.resourceType) return false;
  if (resourceIds.length > 0 && !resourceIds.includes(event.resourceId)) return false;
  return creatorIds.length === 0 || (event.creatorId !== null && creatorIds.includes(event.creatorId));
}
