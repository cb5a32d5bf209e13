import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type GetHostCredentialRequest,
  GetHostCredentialResponseSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { notFound, valueUnusable } from "../../domain/error.ts";
import { isHostOf } from "../../domain/source/initializer-address.ts";
import { callerOf } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { executorOf } from "../identity/executor.ts";
import { requireTrustedSource } from "../identity/source-trust.ts";
import { openHostToken } from "./host-token-secret.ts";
import { writeUnderLease } from "./lease.ts";
import type { FindHandler } from "./work-handler.ts";

/**
 * Hands out the credential that the executor of leased work has for a host on
 * the runner: only of hosts that the work itself begins from, only while the
 * executor can act, and only for sources that were set by somebody on whose word
 * its credential may be used. Each time is kept in the audit trail.
 *
 * @throws DomainError VALUE_UNUSABLE for another host, EXECUTOR_UNFIT,
 *   CREDENTIAL_WITHHELD, NOT_FOUND without such a credential
 */
export function getHostCredential(
  deps: Pick<ServiceDependencies, "store" | "keys"> & { readonly handlerOf: FindHandler },
  req: GetHostCredentialRequest,
  ctx: HandlerContext,
) {
  return writeUnderLease(deps, req, ctx, async (tx, scope, lease) => {
    const host = req.host.toLowerCase();
    const use = await deps.handlerOf(lease.kind).credentialUse(tx, scope, lease);
    const { subject, addresses, sourceSetBy: setters, sourceKinds: kinds, namedBy } = use;
    if (!isHostOf(host, addresses)) {
      throw valueUnusable("host", "the work begins from no repository at this host");
    }
    await executorOf(tx, scope, subject);
    await requireTrustedSource(tx, scope, { host, executor: subject, namedBy, setters, kinds });
    const runnerId = callerOf(ctx).subject.id;
    const opened = await openHostToken(tx, scope, deps.keys, { runnerId, host, subject });
    if (!opened) throw notFound("host authentication token");
    const { token, secrets } = opened;
    return create(GetHostCredentialResponseSchema, {
      token: secrets.token,
      source: token.source,
      ...(token.expiresAt && { expiresAt: token.expiresAt }),
    });
  });
}
