import { existsSync } from "node:fs";
import { join } from "node:path";
import { type DataConfig, keyFileOf } from "../config/config.ts";
import { addSecret } from "../key-file.ts";
import { type Keys, keysFrom } from "../keys.ts";
import {
  DamagedSubscription,
  reencryptSubscriptions,
} from "../services/access/event-subscription/subscription-secrets.ts";
import { DamagedSecret, reencryptSecrets } from "../services/policy/secret-value.ts";
import { DamagedHostToken, reencryptHostTokens } from "../services/runner/host-token-reencryption.ts";
import {
  DamagedWebhookSecret,
  reencryptWebhookSecrets,
} from "../services/workflow/webhook-secret-reencryption.ts";
import { countTokensUnderMac } from "../store/identity/token.ts";
import { DATABASE_FILE } from "../store/sqlite/open.ts";
import type { Store } from "../store/store.ts";
import { type OpenData, withoutServer } from "./open-data.ts";
import { StartError } from "./start-error.ts";

/**
 * Creates a new key and re-encrypts all credentials with it. The former keys stay in the file: they still verify the
 * audit rows made under them, and tokens of releases before SHA-256 still work.
 *
 * A server holds its keys in memory and could not decrypt values under a new key, so no server may run meanwhile. The
 * next rotation completes an interrupted one and creates no further key.
 *
 * @returns the report for the person at the terminal
 * @throws StartError when a server runs on the folder, or the folder or the key file does not exist
 */
export async function rotateKeys(config: DataConfig): Promise<string> {
  const file = keyFileOf(config);
  const database = config.databaseUrl ? [] : [join(config.dataDir, DATABASE_FILE)];
  for (const needed of [...database, file]) {
    if (!existsSync(needed)) throw new StartError(`there is no ${needed}: nothing was rotated`);
  }
  return withoutServer(config, "keys are rotated", (data) => rotate(data, file));
}

async function rotate({ store, keys }: OpenData, file: string): Promise<string> {
  try {
    const finished = await reencrypt(store, keys);
    if (countOf(finished) > 0) {
      return `An earlier rotation to the key ${keys.id} was interrupted and is now complete: ${summaryOf(finished)}.\nRotate again for a new key.\n`;
    }
    const rotated = newKeys(file);
    const sealed = await reencrypt(store, rotated);
    return `The new key is ${rotated.id}: ${summaryOf(sealed)}.\n${formerKeys(file, await countTokensUnderMac(store.reader))}`;
  } catch (error) {
    if (error instanceof DamagedHostToken) {
      throw new StartError(`${error.message}; delete that token, or restore its row, and rotate again`);
    }
    if (error instanceof DamagedSecret) {
      throw new StartError(`${error.message}; delete that secret, or restore its row, and rotate again`);
    }
    if (error instanceof DamagedSubscription) {
      throw new StartError(
        `${error.message}; delete that subscription, or restore its row, and rotate again`,
      );
    }
    if (error instanceof DamagedWebhookSecret) {
      throw new StartError(`${error.message}; delete that workflow, or restore its row, and rotate again`);
    }
    throw error;
  }
}

/** The numbers of credentials that were encrypted with the newest key. */
interface ReencryptedCounts {
  readonly hostTokens: number;
  /** The secrets of workflows and of event subscriptions. */
  readonly webhookSecrets: number;
  readonly secrets: number;
}

function countOf({ hostTokens, webhookSecrets, secrets }: ReencryptedCounts): number {
  return hostTokens + webhookSecrets + secrets;
}

async function reencrypt(store: Store, keys: Keys): Promise<ReencryptedCounts> {
  const hostTokens = await reencryptHostTokens(store, keys);
  const inbound = await reencryptWebhookSecrets(store, keys);
  const webhookSecrets = inbound + (await reencryptSubscriptions(store, keys));
  return { hostTokens, webhookSecrets, secrets: await reencryptSecrets(store, keys) };
}

function newKeys(file: string): Keys {
  try {
    return keysFrom(...addSecret(file));
  } catch (error) {
    throw new StartError(`the key file ${file} cannot be replaced: ${(error as Error).message}`);
  }
}

function formerKeys(file: string, tokens: number): string {
  const reason = `Former keys stay in ${file} for audit rows made with them`;
  if (tokens === 0) return `${reason}.\n`;
  const [are, their, use] =
    tokens === 1 ? ["token that is", "its", "it is"] : ["tokens that are", "their", "they are"];
  return `${reason}, and for ${tokens} ${are} stored under ${their} HMAC until ${use} next used.\n`;
}

function summaryOf(counts: ReencryptedCounts): string {
  const numberOf = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;
  const tokens = numberOf(counts.hostTokens, "host authentication token");
  const webhooks = numberOf(counts.webhookSecrets, "webhook secret");
  const secrets = numberOf(counts.secrets, "secret");
  return `${tokens}, ${webhooks} and ${secrets} ${countOf(counts) === 1 ? "was" : "were"} sealed with it`;
}
