import { useQuery } from "@connectrpc/connect-query";
import type { ResourceType } from "#gen/service/v1/event_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { Principal, type Subject } from "#gen/service/v1/identity_pb.js";
import { usePerson } from "../../api/person.tsx";
import { useOwnRole } from "./own-role.ts";

/** Returns whether the signed-in person administers the organization; undefined until it is known. */
export function useIsAdministrator(): boolean | undefined {
  const { user } = usePerson();
  const role = useOwnRole(user?.organizationId ?? "", user?.id ?? "");
  return role && role === "administrator";
}

/** A resource that its creator, administrators, and groups with the administering role may change. */
interface Shared {
  readonly creator: Subject | undefined;
  /** Undefined when no group can have a role on it. */
  readonly resourceType?: ResourceType;
  readonly resourceId?: string;
}

/**
 * Returns whether the signed-in person may change a resource; undefined until it is known. True also when a group
 * administers the resource, because only the server knows its members.
 */
export function useMayChange({ creator, resourceType, resourceId = "" }: Shared): boolean | undefined {
  const { user } = usePerson();
  const isAdministrator = useIsAdministrator();
  const isOwn = creator?.principal === Principal.USER && creator.id === user?.id;
  const isMember = user !== undefined && isAdministrator === false && !isOwn;
  const shares = useQuery(
    GroupService.method.listRoleAssignments,
    { resourceType, resourceId, pagination: { pageSize: 100 } },
    { enabled: isMember && resourceType !== undefined && resourceId !== "" },
  );
  if (isAdministrator || (user !== undefined && isOwn)) return true;
  if (!isMember) return undefined;
  if (resourceType === undefined) return false;
  if (shares.error) return true;
  return shares.data?.roleAssignments.some(({ role }) => role === ResourceRole.ADMIN);
}
