import { createClient } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { EventService, type WatchEventsResponse } from "#gen/service/v1/event_service_pb.js";
import { usePerson } from "./person.tsx";
import { queries, transport } from "./server.tsx";
import { type StreamState, useStream } from "./stream.ts";

const events = createClient(EventService, transport);

/** The services whose responses may change when a resource of a kind changes. */
const SERVICES: Readonly<Partial<Record<ResourceType, readonly string[]>>> = {
  [ResourceType.AGENT_EXECUTION]: ["AgentService"],
  [ResourceType.AGENT]: ["AgentService"],
  [ResourceType.APPROVAL]: ["ApprovalService"],
  [ResourceType.WORKFLOW]: ["WorkflowService"],
  [ResourceType.WORKFLOW_EXECUTION]: ["WorkflowService"],
  [ResourceType.WORKFLOW_EXECUTION_ACTION]: ["WorkflowService"],
  [ResourceType.PULL_REQUEST]: ["WorkflowService"],
  [ResourceType.PREBUILD]: ["PrebuildService"],
  [ResourceType.PROJECT]: ["ProjectService"],
  [ResourceType.RUNNER]: ["RunnerService"],
  [ResourceType.ENVIRONMENT]: ["EnvironmentService"],
  [ResourceType.ENVIRONMENT_CLASS]: ["RunnerConfigurationService"],
  [ResourceType.ORGANIZATION]: ["OrganizationService"],
  [ResourceType.ORGANIZATION_POLICY]: ["OrganizationService"],
  [ResourceType.SECURITY_POLICY]: ["SecurityService"],
  [ResourceType.USER]: ["OrganizationService", "UserService"],
  [ResourceType.EVENT_SUBSCRIPTION]: ["EventSubscriptionService"],
  [ResourceType.GROUP]: ["GroupService"],
  [ResourceType.SERVICE_ACCOUNT]: ["ServiceAccountService"],
  [ResourceType.SECRET]: ["SecretService"],
  [ResourceType.ORGANIZATION_SECRET]: ["SecretService"],
  [ResourceType.TOKEN]: ["UserService"],
  [ResourceType.PERSONAL_ACCESS_TOKEN]: ["UserService"],
};

/** Milliseconds to collect changes before lists are read again: a busy organization changes all the time. */
const GATHER_MS = 400;

const stale = new Set<string>();

/** Marks everything read from some services as stale; what the page shows is read again. */
function markStale(services: readonly string[]): void {
  const isGathering = stale.size > 0;
  for (const service of services) stale.add(`service.v1.${service}`);
  if (isGathering || stale.size === 0) return;
  setTimeout(() => {
    const names = new Set(stale);
    stale.clear();
    void queries.invalidateQueries({
      predicate: ({ queryKey }) => {
        const [, key] = queryKey as readonly [string, { readonly serviceName?: string }?];
        return key?.serviceName !== undefined && names.has(key.serviceName);
      },
    });
  }, GATHER_MS);
}

/**
 * The message of the tab that has the stream to the other tabs: what has changed in its organization, or only a sign
 * of life.
 */
type TabMessage = {
  readonly organizationId: string;
  readonly sequence?: string;
  readonly services: readonly string[];
};

/** Milliseconds between two signs of life of the tab with the stream, and how long each is trusted. */
const SIGN_MS = 1_500;
const BELIEVED_MS = 6_000;

const channel = new BroadcastChannel("chartroom-events");

/** The last event that this tab has seen, on its own stream or from another tab; undefined before the first. */
let last: bigint | undefined;

function servicesOf(event: WatchEventsResponse): readonly string[] {
  // After a gap, anything may have changed.
  if (event.historyPruned) return [...new Set(Object.values(SERVICES).flat())];
  return SERVICES[event.resourceType] ?? [];
}

/** Watches the organization's events in one browser tab on behalf of all tabs, and reads again what has changed. */
export function useEvents(): StreamState {
  const [isFollowed, setIsFollowed] = useState(false);
  const organizationId = usePerson().user?.organizationId ?? "";
  useEffect(() => {
    let silence: ReturnType<typeof setTimeout> | undefined;
    const listen = ({ data }: MessageEvent<TabMessage>) => {
      // A tab that has not noticed an organization switch reports events of the previous organization.
      if (data.organizationId !== organizationId) return;
      if (data.sequence !== undefined) last = BigInt(data.sequence);
      markStale(data.services);
      setIsFollowed(true);
      clearTimeout(silence);
      silence = setTimeout(() => setIsFollowed(false), BELIEVED_MS);
    };
    channel.addEventListener("message", listen);
    return () => {
      channel.removeEventListener("message", listen);
      clearTimeout(silence);
    };
  }, [organizationId]);
  const state = useStream({
    key: "events",
    slot: "events",
    open: (signal, onHeader) =>
      events.watchEvents(
        { scope: { case: "organization", value: true }, ...(last !== undefined && { afterSequence: last }) },
        { signal, onHeader },
      ),
    onMessage(event) {
      last = event.sequence;
      const services = servicesOf(event);
      markStale(services);
      channel.postMessage({
        organizationId,
        sequence: String(event.sequence),
        services,
      } satisfies TabMessage);
    },
  });
  useEffect(() => {
    if (state !== "live") return;
    const tell = () => channel.postMessage({ organizationId, services: [] } satisfies TabMessage);
    tell();
    const timer = setInterval(tell, SIGN_MS);
    return () => clearInterval(timer);
  }, [state, organizationId]);
  return isFollowed ? "live" : state;
}
