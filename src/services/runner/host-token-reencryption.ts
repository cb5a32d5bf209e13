import type { HostTokenSecrets } from "../../domain/runner/host-token.ts";
import type { Keys } from "../../keys.ts";
import type { SealedSecrets } from "../../store/runner/host-token.ts";
import {
  findHostTokensUnderKey,
  reencryptHostTokenSecrets,
} from "../../store/runner/host-token-reencryption.ts";
import type { Store } from "../../store/store.ts";
import { reencryptRows } from "../policy/reencryption.ts";
import { openHostTokenSecrets, sealHostTokenSecrets } from "./host-token-secret.ts";

/** The error for a host token that cannot be decrypted, because its row was changed outside the server. */
export class DamagedHostToken extends Error {
  override readonly name = "DamagedHostToken";

  constructor(id: string, cause: unknown) {
    super(`the host authentication token ${id} does not open: its row was changed or moved`, { cause });
  }
}

/**
 * Re-encrypts every host token that is encrypted with a former key. It may be interrupted and called again at any
 * time. Nothing is recorded, since the tokens themselves do not change.
 *
 * @returns the number of re-encrypted tokens
 * @throws DamagedHostToken; the tokens before it are re-encrypted
 */
export async function reencryptHostTokens(store: Store, keys: Keys): Promise<number> {
  return reencryptRows(store, keys, {
    find: findHostTokensUnderKey,
    reencrypt: (tx, { id, sealed }) =>
      reencryptHostTokenSecrets(tx, id, sealHostTokenSecrets(keys, id, openOrThrow(keys, id, sealed))),
  });
}

function openOrThrow(keys: Keys, id: string, sealed: SealedSecrets): HostTokenSecrets {
  try {
    return openHostTokenSecrets(keys, id, sealed);
  } catch (error) {
    throw new DamagedHostToken(id, error);
  }
}
