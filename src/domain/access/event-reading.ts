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

/**
 * Returns whether a caller may read the resource of an event, also when the resource is gone. Only
 * administrators may read a type that the table lacks.
 * @param caller with its present role
 */
export function mayReadEvent(policies: Policies, caller: Caller, event: EventDescription): boolean {
  if (caller.role === "administrator") return true;
  if (caller.role !== "member" && caller.role !== "service_account") return false;
  switch (READERS[event.resourceType]) {
    case "everybody":
      // A pull request that somebody opened in an environment has an owner.
      if (event.resourceType !== ResourceType.PULL_REQUEST || event.ownerId === null) return true;
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
