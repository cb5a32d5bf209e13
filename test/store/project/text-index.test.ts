import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { Maintenance } from "../../../src/store/sqlite/checkpoint/maintenance-thread.ts";
import { DATABASE_FILE } from "../../../src/store/sqlite/open.ts";
import { type Store, SYSTEM } from "../../../src/store/store.ts";
import { until } from "../../harness/until.ts";
import { ONE, openWithOrganizations, TWO } from "../made-up-changes.ts";

/** Begin of the rows of the first organization. */
const FIRST_RANGE = 2 ** 30;

let dataDir: string;
let store: Store;
let other: Database.Database;

beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
  other = new Database(join(dataDir, DATABASE_FILE));
});
afterEach(async () => {
  other.close();
  await store.close();
});

/** Enters texts, each in a commit of its own. */
async function enter(first: number, count: number): Promise<void> {
  for (let row = first; row < first + count; row++) {
    await store.write(SYSTEM, "test", async (tx) => tx.indexText({ organizationId: ONE }, `text ${row}`));
  }
}

/** Resolves when so many segments are left; a little is merged behind each change, once the thread is there. */
const merged = (fits: (segments: number) => boolean) =>
  until(() => store.write(SYSTEM, "test", async () => segments()), fits);

const segments = () =>
  other.prepare("select count(distinct segid) from project_search_idx").pluck().get() as number;
const found = () =>
  other
    .prepare<[], number>(
      "select rowid from project_search where project_search match '\"tex\"' order by rowid",
    )
    .pluck()
    .all()
    .map((row) => row - FIRST_RANGE);

test("texts become small segments, which are merged before the engine would do so within a change", async () => {
  await enter(1, 7);
  expect(segments()).toBe(7);
  await enter(8, 1);
  await merged((count) => count === 1);
  await enter(9, 192);
  await merged((count) => count < 8);
  expect(found()).toHaveLength(200);
});

test("a commit makes one segment, whatever order its texts come in", async () => {
  await store.write(SYSTEM, "test", async (tx) => {
    // Each organization has a range of rows, and so they go up and down.
    for (const organizationId of [TWO, ONE, TWO, ONE, TWO, ONE])
      await tx.indexText({ organizationId }, "text");
  });
  expect(segments()).toBe(1);
  expect(found()).toHaveLength(6);
});

test("a change that fails enters no text, and takes none of those that share its commit", async () => {
  const failing = store.write(SYSTEM, "test", async (tx) => {
    await tx.indexText({ organizationId: ONE }, "text 2");
    await tx.indexText({ organizationId: ONE }, "text 3");
    throw new Error("after both");
  });
  await Promise.all([enter(1, 1), expect(failing).rejects.toThrow("after both"), enter(4, 1)]);
  expect(found()).toEqual([1, 2]);
});

test("a merge waits for no other process, and a later one makes up for it", async () => {
  const maintenance = new Maintenance(join(dataDir, DATABASE_FILE));
  await enter(1, 7);
  other.exec("begin immediate");
  expect(await maintenance.order({ mergePages: 16 })).toBeUndefined();
  other.exec("commit");
  expect(segments()).toBe(7);
  expect(await maintenance.order({ mergePages: 16 })).toEqual({ hasMerged: false });
  await enter(8, 1);
  await merged((count) => count === 1);
  // The store looks for more to merge itself, and then this one waits for it no more than for another process.
  const later = await until(
    () => maintenance.order({ mergePages: 16 }),
    (answer) => answer !== undefined,
  );
  expect(later).toEqual({ hasMerged: false });
  await maintenance.close();
});
