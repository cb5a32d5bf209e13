import type { Change, ResourceType, Scope } from "./store.ts";

/** Returns the topic of an organization's events, for streams that wait with Store.onChange. */
export const eventsOf = ({ organizationId }: Scope): string => `events of ${organizationId}`;

/** Returns the topic of changes that may grant or revoke rights in an organization. */
export const rightsOf = ({ organizationId }: Scope): string => `rights in ${organizationId}`;

/** Types of resources that determine rights. */
const RIGHTS_TYPES: ReadonlySet<ResourceType> = new Set<ResourceType>([
  "account",
  "group",
  "group_membership",
  "member",
  "organization",
  "organization_policies",
  "personal_token",
  "role_assignment",
  "service_account",
  "service_account_token",
  "token",
]);

/** Returns the topics of a change: its resource, and its effects on the organization. */
export function topicsOf({ organizationId, type, id, kind }: Change): string[] {
  if (organizationId === null || kind === "read") return [id];
  const scope = { organizationId };
  return [id, eventsOf(scope), ...(RIGHTS_TYPES.has(type) ? [rightsOf(scope)] : [])];
}
