import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { removeExpiredResponses } from "../../../src/jobs/response-expiry.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { findStoredResponse, insertStoredResponse } from "../../../src/store/record/idempotency.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { DAY_MS, openTestStore, type TestStore } from "../../harness/test-store.ts";

let testStore: TestStore;
let caller: Caller;
beforeEach(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
});
afterEach(() => testStore.close());

const placeOf = (key: string) => ({ callerId: caller.subject.id, operation: "test", key });
const keep = (...keys: string[]) =>
  testStore.store.write(SYSTEM, "test", async (tx) => {
    for (const key of keys) {
      const answer = { request_hash: new Uint8Array([1]), response: new Uint8Array([2]), redacted: 0 };
      await insertStoredResponse(tx, caller, placeOf(key), answer);
    }
  });
const isKept = (key: string) =>
  testStore.store.write(
    SYSTEM,
    "test",
    async (tx) => (await findStoredResponse(tx, caller, placeOf(key))) !== undefined,
  );
const rows = () =>
  builderOf(testStore.store.reader).selectFrom("idempotency").select("key").orderBy("key").execute();

describe("a kept answer", () => {
  test("is found for 24 hours, and may then be replaced", async () => {
    await keep("a");
    testStore.clock.now += DAY_MS - 1;
    expect(await isKept("a")).toBe(true);
    testStore.clock.now += 1;
    expect(await isKept("a")).toBe(false);
    await keep("a");
    expect([await isKept("a"), await rows()]).toEqual([true, [{ key: "a" }]]);
  });

  test("is removed by the job once it is too old, however many there are, and leaves no audit row", async () => {
    for (let group = 0; group < 5; group++) {
      await keep(...Array.from({ length: 500 }, (_, index) => `old ${group} ${index}`));
      testStore.clock.now += 1;
    }
    testStore.clock.now += DAY_MS;
    await keep("young");
    const { audit } = await testStore.history(caller);
    expect(await removeExpiredResponses(testStore.store, testStore.clock.now)).toBe(2_500);
    expect(await rows()).toEqual([{ key: "young" }]);
    expect((await testStore.history(caller)).audit).toEqual(audit);
    expect(await removeExpiredResponses(testStore.store, testStore.clock.now)).toBe(0);
  });
});
