import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  OrganizationService as Contract,
  GetOrganizationRequest,
} from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../domain/caller.ts";
import { notFound } from "../domain/error.ts";
import { organizationMessage } from "../domain/organization.ts";
import { findOrganization } from "../store/organization.ts";
import { callerOf } from "./call.ts";
import type { ServiceDependencies } from "./dependencies.ts";

/** What is built of the service; the router answers unimplemented for the rest. */
type Built = Pick<ServiceImpl<typeof Contract>, "getOrganization">;

/** Organizations, their members and their policies. */
export class OrganizationService implements Built {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  async getOrganization({ organizationId }: GetOrganizationRequest, ctx: HandlerContext) {
    refuseOtherOrganization(callerOf(ctx), organizationId);
    const organization = await findOrganization(this.#deps.store.reader, organizationId);
    if (!organization) throw notFound("organization");
    return { organization: organizationMessage(organization) };
  }
}

/**
 * Holds an organization that a request names against the caller's own.
 *
 * @throws DomainError NOT_FOUND for every other id, of something or of nothing
 */
function refuseOtherOrganization(caller: Caller, organizationId: string): void {
  if (organizationId !== caller.organizationId) throw notFound("organization");
}
