import type { HandlerContext } from "@connectrpc/connect";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { type ServiceAccountToken, ServiceAccountTokenSchema } from "#gen/service/v1/service_account_pb.js";
import type { CreateServiceAccountTokenRequest } from "#gen/service/v1/service_account_service_pb.js";
import { notFound, unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { validForMs } from "../../domain/identity/personal-token.ts";
import {
  newServiceAccountToken,
  requireLastingToken,
  requireOwnServiceAccountId,
} from "../../domain/identity/service-account.ts";
import type { Keys } from "../../keys.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import {
  findServiceAccountToken,
  serviceAccountTokenOfRow,
} from "../../store/identity/service-account-token.ts";
import { findTokenById, insertToken } from "../../store/identity/token.ts";
import { toBody } from "../../store/json.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { requireOwnership } from "../call/call.ts";

/**
 * Creates a token of a service account, for an administrator or for the service account itself.
 *
 * @returns the token and its value, which is not stored
 * @throws DomainError NOT_FOUND, PERMISSION_DENIED, VALUE_UNUSABLE when no service account is named, PHASE_UNSUITABLE
 * for a suspended one
 */
export async function createServiceAccountToken(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  keys: Keys,
  req: CreateServiceAccountTokenRequest,
): Promise<{ token: string; serviceAccountToken: ServiceAccountToken }> {
  const serviceAccountId = req.serviceAccountId || requireOwnServiceAccountId(caller);
  const row = await findServiceAccount(tx.db, caller, serviceAccountId);
  if (!row) throw notFound("service account");
  requireOwnership(ctx, { id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT });
  const { creator, accountId } = await findAnswerable(tx, caller);
  const { token, expiresAtMs } = newServiceAccountToken(
    { serviceAccountId, description: req.description, validForMs: validForMs(req.validFor), creator },
    row.valid_until,
    { id: tx.newId(), now: tx.now },
  );
  const { value, hash } = keys.mintToken("service_account");
  await insertToken(tx, caller, {
    id: token.id,
    organization_id: caller.organizationId,
    kind: "service_account",
    subject_id: serviceAccountId,
    hash,
    hmac_key_id: null,
    read_only: 0,
    expires_at: expiresAtMs,
    last_used_at: null,
    creator_account_id: accountId,
    disabled_at: null,
    body: toBody(ServiceAccountTokenSchema, token),
  });
  return { token: value, serviceAccountToken: token };
}

/**
 * Returns the creator and the responsible account of a new token. A service account has no account: a token that it
 * creates gets the creator and account of the token it used, so that blocking that person's account also blocks the
 * new token.
 */
async function findAnswerable(
  tx: WriteTransaction,
  caller: Caller,
): Promise<{ creator: Subject | undefined; accountId: string | null }> {
  if (caller.role !== "service_account") return { creator: caller.subject, accountId: caller.accountId };
  requireLastingToken((await findTokenById(tx.db, caller.tokenId))?.kind);
  const used = await findServiceAccountToken(tx.db, caller, caller.tokenId);
  // The caller's token was deleted since authentication. A new token would have no account, and could not be blocked.
  if (!used) throw unauthenticated();
  return { creator: serviceAccountTokenOfRow(used).creator, accountId: used.creator_account_id };
}
