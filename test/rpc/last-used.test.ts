import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type Authentication, createAuthentication } from "../../src/rpc/access/authentication.ts";
import { createTokenAsOperator } from "../../src/services/access/organization-creation.ts";
import { withRawData } from "../harness/raw-data.ts";
import { MINUTE_MS, openTestStore, START_MS, type TestStore } from "../harness/test-store.ts";

let testStore: TestStore;
let authenticate: Authentication;
let authorization: string;
beforeEach(async () => {
  testStore = openTestStore();
  const { store, keys, clock } = testStore;
  const { subject } = await testStore.createOrganization("harbour");
  const token = await createTokenAsOperator(store, keys, {
    userId: subject.id,
    description: "",
    validForMs: 0,
  });
  authorization = `Bearer ${token}`;
  authenticate = createAuthentication({
    store,
    keys,
    now: () => clock.now,
    onUpdateFailure: (error) => {
      throw error;
    },
  });
  // Each time that the last use of a token is written leaves a row.
  await withRawData(testStore.dataDir, (raw) =>
    raw.run(raw.isPostgres ? NOTED_ON_POSTGRES : NOTED_ON_SQLITE),
  );
});
afterEach(() => testStore.close());

const NOTED_ON_SQLITE = `create trigger noted after update of last_used_at on token
  begin insert into fact (name, value) values (hex(randomblob(16)), new.last_used_at); end`;

const NOTED_ON_POSTGRES = `create function note() returns trigger language plpgsql as
  $$ begin insert into fact (name, value) values (gen_random_uuid(), new.last_used_at); return new; end $$;
  create trigger noted after update of last_used_at on token for each row execute function note()`;

/** Lets so many requests in at the same time; when the last use was written so far. */
async function writtenAfter(requests: number, now: number): Promise<number[]> {
  testStore.clock.now = now;
  const callers = await Promise.all(Array.from({ length: requests }, () => authenticate(authorization)));
  expect(new Set(callers.map(({ kind }) => kind))).toEqual(new Set(["known"]));
  // Behind the bookkeeping of the requests, for which they do not wait.
  await testStore.store.touchAll([]);
  const rows = await withRawData(testStore.dataDir, (raw) =>
    raw.rows("select value from fact order by value"),
  );
  return rows.map(({ value }) => Number(value));
}

describe("the last use of a token", () => {
  test("is written at the first use and then once a minute at most", async () => {
    const later = START_MS + 500;
    expect(await writtenAfter(1, later)).toEqual([later]);
    expect(await writtenAfter(1, later + MINUTE_MS - 1)).toEqual([later]);
    expect(await writtenAfter(1, later + MINUTE_MS)).toEqual([later, later + MINUTE_MS]);
    expect(await writtenAfter(1, later + MINUTE_MS + 1)).toEqual([later, later + MINUTE_MS]);
  });

  test("is written for all of 100 requests at the same time, and again when its time has come", async () => {
    const first = await writtenAfter(100, START_MS);
    const both = await writtenAfter(100, START_MS + MINUTE_MS);
    expect(new Set(first)).toEqual(new Set([START_MS]));
    expect(new Set(both)).toEqual(new Set([START_MS, START_MS + MINUTE_MS]));
    // Once each on SQLite. A database may answer a read before the write, and be heard after it.
    expect(both.length).toBeLessThan(10);
  });
});
