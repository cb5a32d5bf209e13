import type { Change, ResourceType, Scope } from "./store.ts";

/** Names what a stream waits for besides a single resource, for Store.onChange: events of an organization. */
export const eventsOf = ({ organizationId }: Scope): string => `events of ${organizationId}`;

/** The same for changes that may give or take rights in an organization. */
export const rightsOf = ({ organizationId }: Scope): string => `rights in ${organizationId}`;

/** Resources that say who may do what. */
const GIVE_RIGHTS: ReadonlySet<ResourceType> = new Set<ResourceType>([
  "account",
  "member",
  "organization",
  "organization_policies",
  "personal_token",
  "service_account",
  "service_account_token",
  "token",
]);

/** Returns what a change wakes the listeners of: its resource, and what it is to the organization. */
export function topicsOf({ organizationId, type, id, kind }: Change): string[] {
  if (organizationId === null || kind === "read") return [id];
  const scope = { organizationId };
  return [id, eventsOf(scope), ...(GIVE_RIGHTS.has(type) ? [rightsOf(scope)] : [])];
}
