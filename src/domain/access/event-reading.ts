import { ResourceType } from "#gen/service/v1/event_pb.js";
import type { Caller } from "../identity/caller.ts";
import { mayReadEveryAgentExecution } from "../policy/agent-policy.ts";
import type { Policies } from "../policy/policies.ts";
import type { EventDescription } from "../record/event-filter.ts";

/**
 * Readers of a resource type besides administrators (docs/permissions.md): everybody, the subject
 * that owns the resource, or nobody.
 */
type Readers = "everybody" | "owner" | "nobody";

const READERS: Readonly<Partial<Record<ResourceType, Readers>>> = {
  [ResourceType.ACCOUNT]: "owner",
  [ResourceType.AGENT]: "everybody",
  [ResourceType.AGENT_EXECUTION]: "owner",
  [ResourceType.APPROVAL]: "owner",
  [ResourceType.ENVIRONMENT]: "everybody",
  [ResourceType.ENVIRONMENT_CLASS]: "everybody",
  [ResourceType.EVENT_SUBSCRIPTION]: "nobody",
  [ResourceType.GROUP]: "everybody",
  [ResourceType.GROUP_MEMBERSHIP_CHANGED]: "everybody",
  [ResourceType.HOST_AUTHENTICATION_TOKEN]: "owner",
  [ResourceType.ORGANIZATION]: "everybody",
  [ResourceType.ORGANIZATION_POLICY]: "everybody",
  [ResourceType.ORGANIZATION_SECRET]: "everybody",
  [ResourceType.PERSONAL_ACCESS_TOKEN]: "owner",
  [ResourceType.PREBUILD]: "everybody",
  [ResourceType.PROJECT]: "everybody",
  [ResourceType.PULL_REQUEST]: "everybody",
  [ResourceType.ROLE_ASSIGNMENT]: "everybody",
  [ResourceType.RUNNER]: "everybody",
  [ResourceType.SECRET]: "everybody",
  [ResourceType.SECURITY_POLICY]: "everybody",
  [ResourceType.SERVICE_ACCOUNT]: "everybody",
  [ResourceType.SERVICE_ACCOUNT_SECRET]: "owner",
  [ResourceType.SERVICE_ACCOUNT_TOKEN]: "owner",
  [ResourceType.SUBSCRIPTION]: "nobody",
  [ResourceType.TOKEN]: "nobody",
  [ResourceType.USER]: "everybody",
  [ResourceType.USER_SECRET]: "owner",
  [ResourceType.WORKFLOW]: "everybody",
  [ResourceType.WORKFLOW_EXECUTION]: "everybody",
  [ResourceType.WORKFLOW_EXECUTION_ACTION]: "everybody",
};

/** Types whose resources have an owner where they belong to an agent execution. */
const OWNED_TYPES: ReadonlySet<ResourceType> = new Set([
  ResourceType.PULL_REQUEST,
  ResourceType.ROLE_ASSIGNMENT,
]);

/**
 * Returns whether the resource of an event is an agent execution or belongs to one, so that a caller reads it too by
 * the role of a group on that.
 */
export function isOfAgentExecution({ resourceType, ownerId }: EventDescription): boolean {
  if (resourceType === ResourceType.AGENT_EXECUTION || resourceType === ResourceType.APPROVAL) return true;
  return OWNED_TYPES.has(resourceType) && ownerId !== null;
}

/**
 * Returns whether a caller may read the resource of an event, even after the resource was removed. Only
 * administrators may read a type that is not in the table. Rights by groups are checked with {@link isOfAgentExecution}.
 * @param caller with its present role
 */
export function mayReadEvent(policies: Policies, caller: Caller, event: EventDescription): boolean {
  if (caller.role === "administrator") return true;
  if (caller.role !== "member" && caller.role !== "service_account") return false;
  switch (READERS[event.resourceType]) {
    case "everybody":
      // A pull request that somebody opened in an environment has an owner, and so has the role of a group on an agent
      // execution.
      if (!OWNED_TYPES.has(event.resourceType) || event.ownerId === null) return true;
      return isOwn(caller, event) || mayReadEveryAgentExecution(policies, caller.role);
    case "owner":
      return isOwn(caller, event) || isShared(policies, caller, event);
    default:
      return false;
  }
}

function isOwn({ subject, accountId }: Caller, event: EventDescription): boolean {
  if (event.resourceType === ResourceType.ACCOUNT) return accountId !== "" && event.resourceId === accountId;
  if (event.ownerId === subject.id) return true;
  // The creator of a service account's token reads it too.
  return event.resourceType === ResourceType.SERVICE_ACCOUNT_TOKEN && event.creatorId === subject.id;
}

function isShared(policies: Policies, { role }: Caller, { resourceType }: EventDescription): boolean {
  const isOfRun = resourceType === ResourceType.AGENT_EXECUTION || resourceType === ResourceType.APPROVAL;
  return isOfRun && mayReadEveryAgentExecution(policies, role);
}
