import { createHash } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { createAuthentication } from "../../src/rpc/access/authentication.ts";
import { createTokenAsOperator } from "../../src/services/access/organization-creation.ts";
import { countTokensUnderMac } from "../../src/store/identity/token.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { SYSTEM } from "../../src/store/store.ts";
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

function within<T>(use: (raw: Database.Database) => T): T {
  const raw = new Database(join(testStore.dataDir, DATABASE_FILE));
  try {
    return use(raw);
  } finally {
    raw.close();
  }
}

/** Stores the token as a release before SHA-256 did. */
function storeUnderMac(): void {
  const { keys } = testStore;
  const changes = within((raw) =>
    raw
      .prepare("update token set hash = ?, hmac_key_id = ? where hash = ?")
      .run(keys.tokenMacs(token)[0], keys.id, sha256()),
  );
  expect(changes.changes).toBe(1);
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
  await store.write(SYSTEM, "test", async () => undefined);
  return kind;
}

const stored = () =>
  within((raw) => raw.prepare("select hash, hmac_key_id from token where hash = ?").get(sha256()));

describe("a token", () => {
  test("is stored under its SHA-256, with no key", () => {
    expect(stored()).toEqual({ hash: sha256(), hmac_key_id: null });
  });

  test("that an earlier release stored under an HMAC works, and is stored anew by its first use", async () => {
    storeUnderMac();
    // As if it had been used a moment ago: that its last use is not written puts nothing off.
    within((raw) => raw.prepare("update token set last_used_at = ?").run(testStore.clock.now));
    expect(await countTokensUnderMac(testStore.store.reader)).toBe(1);
    expect(stored()).toBeUndefined();
    expect(await use()).toBe("known");
    expect(stored()).toEqual({ hash: sha256(), hmac_key_id: null });
    expect(await countTokensUnderMac(testStore.store.reader)).toBe(0);
    expect(await use()).toBe("known");
    expect(failures).toEqual([]);
  });

  test("goes on working while it cannot be stored anew", async () => {
    storeUnderMac();
    within((raw) =>
      raw.exec("create trigger refused before update on token begin select raise(abort, 'no'); end"),
    );
    expect(await use()).toBe("known");
    expect(failures).toHaveLength(1);
    within((raw) => raw.exec("drop trigger refused"));
    expect(await use()).toBe("known");
    expect(stored()).toEqual({ hash: sha256(), hmac_key_id: null });
  });

  test("that may not enter stays as it is stored", async () => {
    storeUnderMac();
    within((raw) => raw.exec("update token set expires_at = 1 where hmac_key_id is not null"));
    expect(await use()).not.toBe("known");
    expect(await countTokensUnderMac(testStore.store.reader)).toBe(1);
  });
});
