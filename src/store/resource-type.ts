import { ResourceType as Kind } from "#gen/service/v1/event_pb.js";
import type { ResourceType } from "./store.ts";

/** The kinds of resources by their names in rows. */
const KINDS: Readonly<Record<ResourceType, Kind>> = {
  account: Kind.ACCOUNT,
  group: Kind.GROUP,
  group_membership: Kind.GROUP_MEMBERSHIP_CHANGED,
  role_assignment: Kind.ROLE_ASSIGNMENT,
  host_token: Kind.HOST_AUTHENTICATION_TOKEN,
  organization_policies: Kind.ORGANIZATION_POLICY,
  security_policy: Kind.SECURITY_POLICY,
  service_account: Kind.SERVICE_ACCOUNT,
  subscription: Kind.SUBSCRIPTION,
  event_subscription: Kind.EVENT_SUBSCRIPTION,
  organization: Kind.ORGANIZATION,
  member: Kind.USER,
  personal_token: Kind.PERSONAL_ACCESS_TOKEN,
  service_account_token: Kind.SERVICE_ACCOUNT_TOKEN,
  token: Kind.TOKEN,
  runner: Kind.RUNNER,
  environment_class: Kind.ENVIRONMENT_CLASS,
  project: Kind.PROJECT,
  environment: Kind.ENVIRONMENT,
  workflow: Kind.WORKFLOW,
  workflow_execution: Kind.WORKFLOW_EXECUTION,
  workflow_action: Kind.WORKFLOW_EXECUTION_ACTION,
  prebuild: Kind.PREBUILD,
  agent_execution: Kind.AGENT_EXECUTION,
  agent: Kind.AGENT,
  approval: Kind.APPROVAL,
  pull_request: Kind.PULL_REQUEST,
  secret: Kind.SECRET,
  organization_secret: Kind.ORGANIZATION_SECRET,
  user_secret: Kind.USER_SECRET,
  service_account_secret: Kind.SERVICE_ACCOUNT_SECRET,
};

/**
 * Returns the contract's kind of a stored type.
 * @throws when a row names a kind that the contract lacks
 */
export function kindOf(stored: string): Kind {
  const kind = KINDS[stored as ResourceType];
  if (kind === undefined) throw new Error(`the record names an unknown resource type: ${stored}`);
  return kind;
}

/** Returns the stored types of these kinds; a kind that no row has is left out. */
export function storedTypes(kinds: readonly Kind[]): ResourceType[] {
  const entries = Object.entries(KINDS) as [ResourceType, Kind][];
  return entries.flatMap(([stored, kind]) => (kinds.includes(kind) ? [stored] : []));
}
