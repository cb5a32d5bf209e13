import { ResourceOperation, ResourceType } from "#gen/service/v1/event_pb.js";
import { valueUnusable } from "../../error.ts";

/** Resources by their names in kinds of events. */
const RESOURCES: Readonly<Record<string, ResourceType>> = {
  account: ResourceType.ACCOUNT,
  agent: ResourceType.AGENT,
  agent_execution: ResourceType.AGENT_EXECUTION,
  approval: ResourceType.APPROVAL,
  environment: ResourceType.ENVIRONMENT,
  environment_class: ResourceType.ENVIRONMENT_CLASS,
  event_subscription: ResourceType.EVENT_SUBSCRIPTION,
  group: ResourceType.GROUP,
  group_membership: ResourceType.GROUP_MEMBERSHIP_CHANGED,
  host_authentication_token: ResourceType.HOST_AUTHENTICATION_TOKEN,
  organization: ResourceType.ORGANIZATION,
  organization_policy: ResourceType.ORGANIZATION_POLICY,
  organization_secret: ResourceType.ORGANIZATION_SECRET,
  personal_access_token: ResourceType.PERSONAL_ACCESS_TOKEN,
  prebuild: ResourceType.PREBUILD,
  project: ResourceType.PROJECT,
  pull_request: ResourceType.PULL_REQUEST,
  role_assignment: ResourceType.ROLE_ASSIGNMENT,
  runner: ResourceType.RUNNER,
  secret: ResourceType.SECRET,
  security_policy: ResourceType.SECURITY_POLICY,
  service_account: ResourceType.SERVICE_ACCOUNT,
  service_account_secret: ResourceType.SERVICE_ACCOUNT_SECRET,
  service_account_token: ResourceType.SERVICE_ACCOUNT_TOKEN,
  subscription: ResourceType.SUBSCRIPTION,
  token: ResourceType.TOKEN,
  user: ResourceType.USER,
  user_secret: ResourceType.USER_SECRET,
  workflow: ResourceType.WORKFLOW,
  workflow_execution: ResourceType.WORKFLOW_EXECUTION,
  workflow_execution_action: ResourceType.WORKFLOW_EXECUTION_ACTION,
};

const NAMES = new Map(Object.entries(RESOURCES).map(([name, type]) => [type, name]));

const OPERATIONS: Readonly<Partial<Record<ResourceOperation, string>>> = {
  [ResourceOperation.CREATE]: "created",
  [ResourceOperation.UPDATE]: "updated",
  [ResourceOperation.DELETE]: "deleted",
};

/** Events that are more specific than a change, such as the failure of an execution, by resource and operation. */
const MOMENTS = {
  "agent_execution.failed": ResourceOperation.UPDATE,
  "agent_execution.waits_for_input": ResourceOperation.UPDATE,
  "approval.asked": ResourceOperation.CREATE,
  "workflow_execution.failed": ResourceOperation.UPDATE,
} as const;

/** A moment of a resource that has a kind of its own. */
export type Moment = keyof typeof MOMENTS;

/** The kind of the event that reports that events were removed before they were sent. */
export const HISTORY_PRUNED = "organization.history_pruned";

/** The fields of an event on which its kind depends. */
export interface EventOfKind {
  readonly resourceType: ResourceType;
  readonly operation: ResourceOperation;
}

/** Returns the name of a resource in kinds of events. */
export const resourceName = (type: ResourceType): string =>
  NAMES.get(type) ?? ResourceType[type].toLowerCase();

/** Every kind that an event may have, in alphabetical order. */
export const EVENT_KINDS: readonly string[] = [
  ...Object.keys(RESOURCES).flatMap((name) => Object.values(OPERATIONS).map((done) => `${name}.${done}`)),
  ...Object.keys(MOMENTS),
].toSorted();

const KNOWN = new Set(["*", ...EVENT_KINDS, ...Object.keys(RESOURCES).map((name) => `${name}.*`)]);

/**
 * Requires that events can have the kinds of a subscription.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireKnownKinds(kinds: readonly string[]): void {
  for (const [index, kind] of kinds.entries()) {
    if (!KNOWN.has(kind))
      throw valueUnusable(
        `eventKinds[${index}]`,
        `no event has the kind ${kind}: docs/webhooks-out.md lists the kinds`,
      );
  }
}

/** Returns the resources whose events a subscription may receive; undefined for all. */
export function resourcesOf(kinds: readonly string[]): ResourceType[] | undefined {
  if (kinds.includes("*")) return undefined;
  const names = new Set(kinds.map((kind) => kind.slice(0, kind.indexOf("."))));
  return [...names].flatMap((name) => RESOURCES[name] ?? []);
}

/** Returns whether the kind under which a subscription gets an event depends on its moment. */
export function dependsOnMoment(kinds: readonly string[], event: EventOfKind): boolean {
  const name = resourceName(event.resourceType);
  const moments = Object.entries(MOMENTS).filter(
    ([moment, operation]) => moment.startsWith(`${name}.`) && operation === event.operation,
  );
  return moments.some(([moment]) => isTaken(kinds, name, moment));
}

/**
 * Returns the kind under which a subscription receives an event; undefined if it does not receive it. The kind is that
 * of the moment if the subscription includes it, and otherwise that of the change.
 */
export function kindFor(
  kinds: readonly string[],
  event: EventOfKind,
  moment: Moment | undefined,
): string | undefined {
  const name = resourceName(event.resourceType);
  const done = OPERATIONS[event.operation];
  if (done === undefined) return undefined;
  if (moment !== undefined && isTaken(kinds, name, moment)) return moment;
  const plain = `${name}.${done}`;
  return isTaken(kinds, name, plain) ? plain : undefined;
}

function isTaken(kinds: readonly string[], name: string, kind: string): boolean {
  return kinds.includes(kind) || kinds.includes(`${name}.*`) || kinds.includes("*");
}
