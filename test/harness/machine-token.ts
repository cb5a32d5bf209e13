import type { Keys } from "../../src/keys.ts";
import { insertToken } from "../../src/store/identity/token.ts";
import { builderOf } from "../../src/store/query-builder.ts";
import { OPERATOR, type Store } from "../../src/store/store.ts";

/** A token of a subject other than a user. */
export interface MachineToken {
  readonly id: string;
  readonly value: string;
}

const HOUR_MS = 3_600_000;

/** Creates a service account, created by an account, with one token. */
export function insertServiceAccountToken(
  store: Store,
  keys: Keys,
  of: { readonly organizationId: string; readonly creatorAccountId: string; readonly description: string },
): Promise<MachineToken> {
  return store.write(OPERATOR, "test", async (tx) => {
    const [subject_id, id] = [tx.newId(), tx.newId()];
    const valid_until = tx.now + HOUR_MS;
    const { value, hash } = keys.mintToken("service_account");
    await builderOf(tx.db)
      .insertInto("service_account")
      .values({
        id: subject_id,
        organization_id: of.organizationId,
        creator_account_id: of.creatorAccountId,
        valid_until,
        suspended: 0,
        search_text: "nightly",
        body: JSON.stringify({ id: subject_id, name: "nightly" }),
      })
      .execute();
    await insertToken(tx, of, {
      id,
      organization_id: of.organizationId,
      kind: "service_account",
      subject_id,
      hash,
      hmac_key_id: null,
      read_only: 0,
      expires_at: valid_until,
      last_used_at: tx.now,
      creator_account_id: of.creatorAccountId,
      disabled_at: null,
      body: JSON.stringify({ id, serviceAccountId: subject_id, description: of.description }),
    });
    return { id, value };
  });
}

/** Creates a token of an environment, as a runner gets it to put into the environment. */
export function insertEnvironmentToken(
  store: Store,
  keys: Keys,
  of: { readonly organizationId: string; readonly environmentId: string },
): Promise<MachineToken> {
  return insertTokenOf(store, keys, of, "environment", of.environmentId);
}

/** Creates a token of a runner, as a runner gets it when it registers. */
export function insertRunnerToken(
  store: Store,
  keys: Keys,
  of: { readonly organizationId: string; readonly runnerId: string },
): Promise<MachineToken> {
  return insertTokenOf(store, keys, of, "runner", of.runnerId);
}

function insertTokenOf(
  store: Store,
  keys: Keys,
  scope: { readonly organizationId: string },
  kind: "environment" | "runner",
  subjectId: string,
): Promise<MachineToken> {
  return store.write(OPERATOR, "test", async (tx) => {
    const id = tx.newId();
    const { value, hash } = keys.mintToken(kind);
    await insertToken(tx, scope, {
      id,
      organization_id: scope.organizationId,
      kind,
      subject_id: subjectId,
      hash,
      hmac_key_id: null,
      read_only: 0,
      expires_at: tx.now + HOUR_MS,
      last_used_at: null,
      creator_account_id: null,
      disabled_at: null,
      body: "{}",
    });
    return { id, value };
  });
}
