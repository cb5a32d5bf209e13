import { newWebhookSecret } from "../../../domain/workflow/trigger/webhook-signature.ts";
import type { Keys } from "../../../keys.ts";
import {
  findSubscriptionsUnderKey,
  reencryptSubscription,
  type SealedTarget,
} from "../../../store/access/event-subscription/event-subscription.ts";
import type { Store } from "../../../store/store.ts";
import { reencryptRows } from "../../policy/reencryption.ts";

/** The decrypted values of a subscription. */
export interface TargetSecrets {
  readonly url: string;
  readonly secret: string;
  /** The previous secret and the end of its validity: milliseconds since 1970 UTC, exclusive. */
  readonly former: { readonly secret: string; readonly until: number } | undefined;
}

/** Returns a new secret in the format of Standard Webhooks. */
export const newSubscriptionSecret = (keys: Pick<Keys, "randomSecret">): string =>
  newWebhookSecret(keys.randomSecret());

/** Returns the secrets that sign a delivery at a given time, newest first. */
export function secretsAt({ secret, former }: TargetSecrets, now: number): string[] {
  return former && now < former.until ? [secret, former.secret] : [secret];
}

/** Encrypts the values of a subscription, all with the newest key. */
export function sealTarget(
  keys: Pick<Keys, "seal">,
  id: string,
  { url, secret, former }: TargetSecrets,
): SealedTarget {
  const seal = (value: string, column: Column) => keys.seal(value, associatedData(id, column));
  const { keyId, sealed } = seal(secret, "sealed_secret");
  return {
    key_id: keyId,
    sealed_url: seal(url, "sealed_url").sealed,
    sealed_secret: sealed,
    sealed_former: former ? seal(former.secret, "sealed_former").sealed : null,
    former_until: former?.until ?? null,
  };
}

/**
 * Decrypts the values of a subscription.
 *
 * @throws when a value was changed or moved, or its key is not in the key file
 */
export function openTarget(keys: Pick<Keys, "open">, id: string, sealed: SealedTarget): TargetSecrets {
  const { key_id, sealed_url, sealed_secret, sealed_former, former_until } = sealed;
  const open = (value: Uint8Array, column: Column) => keys.open(key_id, value, associatedData(id, column));
  return {
    url: open(sealed_url, "sealed_url"),
    secret: open(sealed_secret, "sealed_secret"),
    former:
      sealed_former && former_until !== null
        ? { secret: open(sealed_former, "sealed_former"), until: former_until }
        : undefined,
  };
}

type Column = "sealed_url" | "sealed_secret" | "sealed_former";

function associatedData(row: string, column: Column) {
  return { table: "event_subscription", row, column };
}

/** The error for a subscription that cannot be decrypted, because its row was changed outside the server. */
export class DamagedSubscription extends Error {
  override readonly name = "DamagedSubscription";

  constructor(id: string, cause: unknown) {
    super(`the secret of the event subscription ${id} does not open: its row was changed or moved`, {
      cause,
    });
  }
}

/**
 * Re-encrypts every subscription that is encrypted with a former key. It may be interrupted and called again at any
 * time. Drops former secrets that are no longer valid.
 *
 * @returns the number of re-encrypted subscriptions
 * @throws DamagedSubscription; the subscriptions before it are re-encrypted
 */
export async function reencryptSubscriptions(store: Store, keys: Keys): Promise<number> {
  return reencryptRows(store, keys, {
    find: findSubscriptionsUnderKey,
    async reencrypt(tx, { id, sealed }) {
      const { former, ...lasting } = openOrThrow(keys, id, sealed);
      const valid = former && former.until > tx.now ? former : undefined;
      await reencryptSubscription(tx, id, sealTarget(keys, id, { ...lasting, former: valid }));
    },
  });
}

function openOrThrow(keys: Pick<Keys, "open">, id: string, sealed: SealedTarget): TargetSecrets {
  try {
    return openTarget(keys, id, sealed);
  } catch (error) {
    throw new DamagedSubscription(id, error);
  }
}
