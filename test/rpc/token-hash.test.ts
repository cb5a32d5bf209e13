import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createAuthentication } from "../../src/rpc/access/authentication.ts";
import { createTokenAsOperator } from "../../src/services/access/organization-creation.ts";
import { countTokensUnderMac } from "../../src/store/identity/token.ts";
import { type RawData, withRawData } from "../harness/raw-data.ts";
import { refuse, stopRefusing } from "../harness/refusing-trigger.ts";
import { openTestStore, type TestStore } from "../harness/test-store.ts";

let testStore: TestStore;
let token: string;
let failures: unknown[];
beforeEach(async () => {
  testStore = openTestStore();
  failures = [];
  const { store, keys } = testStore;
  const { subject } = await testStore.createOrganization("harbour");
  token = await createTokenAsOperator(store, keys, { userId: subject.id, description: "", validForMs: 0 });
});
afterEach(() => testStore.close());

const sha256 = () => createHash("sha256").update(token).digest();

const within = <T>(use: (raw: RawData) => Promise<T>) => withRawData(testStore.dataDir, use);

const REFUSAL = { name: "refused", on: "update on token", message: "no" };

/** Stores the token as a release before SHA-256 did. */
async function storeUnderMac(): Promise<void> {
  const { keys } = testStore;
  const update = "update token set hash = ?, hmac_key_id = ? where hash = ? returning id";
  const changed = await within((raw) => raw.rows(update, keys.tokenMacs(token)[0], keys.id, sha256()));
  expect(changed).toHaveLength(1);
}

/** How a request with the token is let in, after the bookkeeping that it leaves. */
async function use(): Promise<string> {
  const { store, keys, clock } = testStore;
  const authenticate = createAuthentication({
    store,
    keys,
    now: () => clock.now,
    onUpdateFailure: (error) => failures.push(error),
  });
  const { kind } = await authenticate(`Bearer ${token}`);
  await store.touchAll([]);
  return kind;
}

const stored = async () => {
  const [row] = await within((raw) =>
    raw.rows("select hash, hmac_key_id from token where hash = ?", sha256()),
  );
  return row;
};

describe("a token", () => {
  test("is stored under its SHA-256, with no key", async () => {
    expect(await stored()).toEqual({ hash: sha256(), hmac_key_id: null });
  });

  test("that an earlier release stored under an HMAC works, and is stored again by its first use", async () => {
    await storeUnderMac();
    // As if it had been used a moment ago: that its last use is not written puts nothing off.
    await within((raw) => raw.rows("update token set last_used_at = ?", testStore.clock.now));
    expect(await countTokensUnderMac(testStore.store.reader)).toBe(1);
    expect(await stored()).toBeUndefined();
    expect(await use()).toBe("known");
    expect(await stored()).toEqual({ hash: sha256(), hmac_key_id: null });
    expect(await countTokensUnderMac(testStore.store.reader)).toBe(0);
    expect(await use()).toBe("known");
    expect(failures).toEqual([]);
  });

  test("goes on working while it cannot be stored again", async () => {
    await storeUnderMac();
    await refuse(testStore.dataDir, REFUSAL);
    expect(await use()).toBe("known");
    expect(failures).toHaveLength(1);
    await stopRefusing(testStore.dataDir, REFUSAL);
    expect(await use()).toBe("known");
    expect(await stored()).toEqual({ hash: sha256(), hmac_key_id: null });
  });

  test("that is refused costs the same look-ups, whatever is wrong with it", async () => {
    const { store, keys, clock } = testStore;
    let lookUps = 0;
    const counted = {
      ...store,
      get reader() {
        lookUps += 1;
        return store.reader;
      },
    };
    const authenticate = createAuthentication({
      store: counted,
      keys,
      now: () => clock.now,
      onUpdateFailure: (error) => failures.push(error),
    });
    const costs = async (authorization: string) => {
      // Rows that were changed outside the store are read after its next write.
      await store.touchAll([]);
      lookUps = 0;
      return [(await authenticate(authorization)).kind, lookUps];
    };
    const unknown = await costs(`Bearer ${keys.mintToken("personal").value}`);
    expect(unknown).toEqual(["unknown", 2]);
    expect(await costs("Bearer let-me-in")).toEqual(unknown);
    expect(await costs(`Bearer ${token}x`)).toEqual(unknown);
    await within((raw) => raw.run("update token set disabled_at = 1"));
    expect(await costs(`Bearer ${token}`)).toEqual(unknown);
    await within((raw) => raw.run("update token set expires_at = 1"));
    expect(await costs(`Bearer ${token}`)).toEqual(unknown);
    await within((raw) => raw.run("update token set disabled_at = null"));
    expect(await costs(`Bearer ${token}`)).toEqual(["expired", 1]);
  });

  test("that may not enter stays as it is stored", async () => {
    await storeUnderMac();
    await within((raw) => raw.run("update token set expires_at = 1 where hmac_key_id is not null"));
    expect(await use()).not.toBe("known");
    expect(await countTokensUnderMac(testStore.store.reader)).toBe(1);
  });
});
