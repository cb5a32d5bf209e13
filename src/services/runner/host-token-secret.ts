import type { HostAuthenticationToken } from "#gen/service/v1/runner_configuration_pb.js";
import type { HostTokenSecrets } from "../../domain/runner/host-token.ts";
import type { Keys } from "../../keys.ts";
import {
  findHostTokenFor,
  type HostTokenKey,
  recordHostTokenRead,
  type SealedSecrets,
} from "../../store/runner/host-token.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** Encrypts the secrets of a token with the newest key. */
export function sealHostTokenSecrets(
  keys: Pick<Keys, "seal">,
  id: string,
  { token, refreshToken }: HostTokenSecrets,
): SealedSecrets {
  const { keyId, sealed } = keys.seal(token, associatedData(id, "sealed_token"));
  return {
    keyId,
    token: sealed,
    refreshToken:
      refreshToken === undefined
        ? undefined
        : keys.seal(refreshToken, associatedData(id, "sealed_refresh_token")).sealed,
  };
}

/**
 * Decrypts the secrets of a token for re-encryption. To send secrets out of the server, use {@link
 * readHostCredential}.
 *
 * @throws when a value was changed or moved, or its key is not in the key file
 */
export function openHostTokenSecrets(
  keys: Pick<Keys, "open">,
  id: string,
  { keyId, token, refreshToken }: SealedSecrets,
): HostTokenSecrets {
  return {
    token: keys.open(keyId, token, associatedData(id, "sealed_token")),
    ...(refreshToken && {
      refreshToken: keys.open(keyId, refreshToken, associatedData(id, "sealed_refresh_token")),
    }),
  };
}

function associatedData(id: string, column: "sealed_token" | "sealed_refresh_token") {
  return { table: "host_token", row: id, column };
}

/** A host token with its decrypted secrets. */
export interface HostCredential {
  readonly token: HostAuthenticationToken;
  readonly secrets: HostTokenSecrets;
}

/**
 * Returns the credential that a runner uses at a host for a subject. It may be expired, since the runner can refresh
 * it. The caller must have checked that the runner holds work for the subject. The audit log names the write's actor
 * as the reader.
 *
 * @returns undefined when there is no such token; nothing is recorded then
 */
export async function readHostCredential(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "open">,
  use: HostTokenKey,
): Promise<HostCredential | undefined> {
  const stored = await findHostTokenFor(tx.db, scope, use);
  if (!stored) return undefined;
  const { token, sealed } = stored;
  recordHostTokenRead(tx, scope, token.id);
  return { token, secrets: openHostTokenSecrets(keys, token.id, sealed) };
}
