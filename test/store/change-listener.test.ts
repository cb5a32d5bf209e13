import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Store, SYSTEM, type WriteTransaction } from "../../src/store/store.ts";
import { listenToOwnCommits } from "../harness/own-commits.ts";
import { stopAll } from "../harness/server.ts";
import { ONE, openWithOrganizations } from "./made-up-changes.ts";

let store: Store;
let told: ReturnType<typeof listenToOwnCommits>;
let changed: string[];

beforeEach(async () => {
  ({ store } = await openWithOrganizations());
  told = listenToOwnCommits(store);
  changed = [];
});
afterEach(() => store.close());
afterAll(stopAll);

const write = (fn: (tx: WriteTransaction) => void) => store.write(SYSTEM, "test", async (tx) => fn(tx));
const listen = (id: string) => told.onChange(id, () => changed.push(id));

test("who waits for a resource learns of the commits that change it, recorded or not", async () => {
  listen("a");
  listen("b");
  await write((tx) => tx.touch("a"));
  expect(changed).toEqual(["a"]);
  await write((tx) =>
    tx.record({ organizationId: ONE, type: "project", id: "b", kind: "created", after: "{}" }),
  );
  expect(changed).toEqual(["a", "b"]);
  await write(() => undefined);
  expect(changed).toEqual(["a", "b"]);
});

test("writes of one commit tell of a resource once", async () => {
  listen("a");
  await Promise.all([write((tx) => tx.touch("a")), write((tx) => tx.touch("a"))]);
  expect(changed).toEqual(["a"]);
});

test("a write that fails tells nobody", async () => {
  listen("a");
  const failing = write((tx) => {
    tx.touch("a");
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  await write((tx) => tx.touch("b"));
  expect(changed).toEqual([]);
});

test("who has left learns nothing more, no matter who else waits for the same", async () => {
  const leave = listen("a");
  listen("a");
  leave();
  leave();
  await write((tx) => tx.touch("a"));
  expect(changed).toEqual(["a"]);
});
