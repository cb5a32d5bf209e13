import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Organization, OrganizationSchema } from "#gen/service/v1/organization_pb.js";
import { permissionDenied } from "../error.ts";

/** An organization's stored data. Times are milliseconds since 1970 UTC. */
export interface OrganizationFacts {
  readonly id: string;
  readonly name: string;
  readonly created_at: number;
  readonly updated_at: number;
  /** JSON array of mail domains. */
  readonly invite_domains: string;
}

/** Requires that the server's operator allows callers to create organizations. @throws DomainError PERMISSION_DENIED */
export function requireCreationAllowed(allowed: boolean): void {
  if (allowed) return;
  throw permissionDenied(
    "create_organization",
    "organizations of this server are created by its operator, on the command line",
  );
}

/** Returns an organization as the contract shows it. */
export function organizationMessage(organization: OrganizationFacts): Organization {
  const { id, name, created_at, updated_at } = organization;
  const domains: string[] = JSON.parse(organization.invite_domains);
  return create(OrganizationSchema, {
    id,
    name,
    createdAt: timestampFromMs(created_at),
    updatedAt: timestampFromMs(updated_at),
    ...(domains.length > 0 && { inviteDomains: { domains } }),
  });
}

/** Returns mail domains as they are stored: in lower case, each once. */
export function storedDomains(domains: readonly string[]): string {
  return JSON.stringify([...new Set(domains.map((domain) => domain.toLowerCase()))]);
}
