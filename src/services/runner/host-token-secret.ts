import type { HostAuthenticationToken } from "#gen/service/v1/runner_configuration_pb.js";
import type { HostTokenSecrets } from "../../domain/runner/host-token.ts";
import type { Keys } from "../../keys.ts";
import {
  findHostTokenFor,
  type HostTokenUse,
  recordHostTokenRead,
  type SealedSecrets,
} from "../../store/runner/host-token.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";

/** Seals the secrets of the token with this id, both with the newest key. */
export function sealSecrets(
  keys: Pick<Keys, "seal">,
  id: string,
  { token, refreshToken }: HostTokenSecrets,
): SealedSecrets {
  const { keyId, sealed } = keys.seal(token, placeOf(id, "sealed_token"));
  return {
    keyId,
    token: sealed,
    refreshToken:
      refreshToken === undefined
        ? undefined
        : keys.seal(refreshToken, placeOf(id, "sealed_refresh_token")).sealed,
  };
}

/**
 * The reverse of {@link sealSecrets}, for sealing anew. What leaves the server
 * goes through {@link openHostToken}.
 *
 * @throws when a value was changed or moved, or its key is not in the key file
 */
export function openSecrets(
  keys: Pick<Keys, "open">,
  id: string,
  { keyId, token, refreshToken }: SealedSecrets,
): HostTokenSecrets {
  return {
    token: keys.open(keyId, token, placeOf(id, "sealed_token")),
    ...(refreshToken && {
      refreshToken: keys.open(keyId, refreshToken, placeOf(id, "sealed_refresh_token")),
    }),
  };
}

function placeOf(id: string, column: "sealed_token" | "sealed_refresh_token") {
  return { table: "host_token", row: id, column };
}

/** A credential on its way to a runner. */
export interface OpenHostToken {
  readonly token: HostAuthenticationToken;
  readonly secrets: HostTokenSecrets;
}

/**
 * The credential that a runner uses at a host for a subject, also when it has
 * expired, since it may be refreshed. The caller must have made sure that the
 * runner holds work for the subject; the audit log names the write's actor as
 * the reader.
 *
 * @returns undefined when there is no such token, of which nothing is recorded
 */
export async function openHostToken(
  tx: WriteTransaction,
  scope: Scope,
  keys: Pick<Keys, "open">,
  use: HostTokenUse,
): Promise<OpenHostToken | undefined> {
  const stored = await findHostTokenFor(tx.db, scope, use);
  if (!stored) return undefined;
  const { token, sealed } = stored;
  recordHostTokenRead(tx, scope, token.id);
  return { token, secrets: openSecrets(keys, token.id, sealed) };
}
