import { useQuery } from "@connectrpc/connect-query";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";

/** Returns the role of the signed-in person; undefined until it is known. */
export function useOwnRole(organizationId: string, userId: string): "administrator" | "member" | undefined {
  const { data } = useQuery(
    OrganizationService.method.listMembers,
    { organizationId, filter: { userIds: [userId] } },
    { enabled: organizationId !== "" && userId !== "" },
  );
  const role = data?.members[0]?.role;
  if (role === undefined) return undefined;
  return role === OrganizationRole.ADMIN ? "administrator" : "member";
}
