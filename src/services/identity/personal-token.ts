import { PersonalAccessTokenSchema } from "#gen/service/v1/user_pb.js";
import { newPersonalToken, type PersonalTokenTemplate } from "../../domain/identity/personal-token.ts";
import type { Keys } from "../../keys.ts";
import { insertToken } from "../../store/identity/token.ts";
import { toBody } from "../../store/json.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/**
 * Creates a personal access token for a user of the scope.
 *
 * @returns the token's value, which is not stored
 * @throws DomainError VALUE_UNUSABLE for a lifetime that is too long
 */
export async function createPersonalToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Keys,
  template: PersonalTokenTemplate,
): Promise<string> {
  const { token, expiresAtMs } = newPersonalToken(template, tx.newId(), tx.now);
  const { value, hash } = keys.mintToken("personal");
  await insertToken(tx, scope, {
    id: token.id,
    organization_id: scope.organizationId,
    kind: "personal",
    subject_id: token.userId,
    hash,
    hmac_key_id: null,
    read_only: token.readOnly ? 1 : 0,
    expires_at: expiresAtMs,
    last_used_at: null,
    creator_account_id: template.creatorAccountId ?? null,
    disabled_at: null,
    body: toBody(PersonalAccessTokenSchema, token),
  });
  return value;
}
