import { ResourceType } from "#gen/service/v1/event_pb.js";
import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";

interface Key {
  readonly id: string;
  readonly organizationId: string;
}

const selectOfApproval = prepared<Key, { executionId: string | null }>((db, { id, organizationId }) =>
  db
    .selectFrom("approval")
    .select("agent_execution_id as executionId")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

const selectOfPullRequest = prepared<Key, { executionId: string | null }>((db, { id, organizationId }) =>
  db
    .selectFrom("pull_request")
    .select("agent_execution_id as executionId")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

const selectOfAssignment = prepared<Key, { executionId: string | null }>((db, { id, organizationId }) =>
  db
    .selectFrom("role_assignment")
    .select("resource_id as executionId")
    .where("id", "=", id)
    .where("organization_id", "=", organizationId),
);

/**
 * Returns the id of the agent execution that an event's resource is or belongs to; undefined for none, and if the
 * resource was removed.
 */
export async function findExecutionOfEvent(
  db: Reader,
  { organizationId }: Scope,
  { resourceType, resourceId: id }: { readonly resourceType: ResourceType; readonly resourceId: string },
): Promise<string | undefined> {
  if (resourceType === ResourceType.AGENT_EXECUTION) return id;
  const select = SELECTS[resourceType];
  const [row] = select ? await select(db, { id, organizationId }) : [];
  return row?.executionId ?? undefined;
}

const SELECTS: Readonly<Partial<Record<ResourceType, typeof selectOfApproval>>> = {
  [ResourceType.APPROVAL]: selectOfApproval,
  [ResourceType.PULL_REQUEST]: selectOfPullRequest,
  [ResourceType.ROLE_ASSIGNMENT]: selectOfAssignment,
};
