import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  IdentityService as Contract,
  GetAuthenticatedIdentityRequest,
} from "#gen/service/v1/identity_service_pb.js";
import { callerOf } from "../call/call.ts";

/** Returns the caller's identity. */
export class IdentityService implements ServiceImpl<typeof Contract> {
  getAuthenticatedIdentity(_req: GetAuthenticatedIdentityRequest, ctx: HandlerContext) {
    const { subject, organizationId } = callerOf(ctx);
    return { subject, organizationId };
  }
}
