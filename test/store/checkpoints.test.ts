import { readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import Database from "better-sqlite3";
import { builderOf } from "../../src/store/query-builder.ts";
import { CHECKPOINT_PAGES, Checkpoints } from "../../src/store/sqlite/checkpoint/checkpoints.ts";
import { Maintenance } from "../../src/store/sqlite/checkpoint/maintenance-thread.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { endNodes, startNodeWithEnvironment } from "../harness/node-process.ts";
import { testWithSlowDisk } from "../harness/own-disk.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { factsIn, openAt, openWithOrganizations } from "./made-up-changes.ts";

let dataDir: string;
let store: Store;

beforeEach(async () => {
  ({ dataDir, store } = await openWithOrganizations());
  await store.close();
});
afterAll(async () => {
  await endNodes();
  await stopAll();
});

/** Opens the store that it is given, writes, and closes it when asked to. */
const CLOSING = `
  import { openStore } from "./src/store/sqlite/open.ts";
  const audit = { keyId: "test", mac: () => new Uint8Array(32) };
  const store = openStore({ dataDir: await nextLine(), now: () => 0, newId: () => "", audit });
  await store.write({ id: "test", principal: 0 }, "test",
    (tx) => tx.db.insertInto("fact").values({ name: "a", value: "" }).execute());
  print("written");
  await nextLine();
  await store.close();
  print("closed");
  process.exit();
`;

testWithSlowDisk(
  "a force that fails while the store is closed leaves the log to the next start",
  async (disk) => {
    const file = join(dataDir, DATABASE_FILE);
    const node = startNodeWithEnvironment(disk.env, CLOSING);
    node.send(dataDir);
    expect(await node.next()).toBe("written");
    // Once, as the kernel tells a loss: the next force says that all is well.
    disk.failOnceFor(DATABASE_FILE);
    // As a disk that lost what was written: the file as it was before the log was copied into it.
    const lost = readFileSync(file);
    node.send("close");
    await expect(node.next()).rejects.toThrow(
      "the disk did not take what was copied into the database file: disk I/O error",
    );
    writeFileSync(file, lost);
    store = openAt(dataDir);
    expect(await factsIn(store)).toEqual(["a"]);
    await store.close();
  },
);

describe("the log next to the file", () => {
  let reader: Database.Database;
  let isEnough: boolean;
  beforeEach(() => {
    store = openAt(dataDir);
    reader = new Database(join(dataDir, DATABASE_FILE), { readonly: true });
    isEnough = false;
  });
  afterEach(async () => {
    reader.close();
    await store.close();
  });

  /** Two clients that never pause, and a third that reads. */
  const load = async () => {
    const client = async (name: string) => {
      for (let count = 0; !isEnough; count++) {
        await store.write(SYSTEM, "test", ({ db }) =>
          builderOf(db)
            .replaceInto("fact")
            .values({ name: `${name} ${count % 50}`, value: `${count % 7}`.repeat(100_000) })
            .execute(),
        );
        await factsIn(store);
      }
    };
    await Promise.all([client("one"), client("two")]);
  };
  const pages = () => (reader.pragma("wal_checkpoint(NOOP)") as [{ log: number }])[0].log;
  /** Resolves when the engine has begun the log again so many times; fails when it does not. */
  const begunAgain = async (times: number) => {
    let before = 0;
    let count = 0;
    await until(
      async () => {
        reader.prepare("select 1 from migration").get();
        const now = pages();
        if (now < before) count += 1;
        before = now;
        return count;
      },
      (sofar) => sofar >= times,
    );
  };

  test("begins again, over and over, under writes and reads that never pause", async () => {
    const loading = load();
    await begunAgain(3).finally(() => {
      isEnough = true;
    });
    await loading;
  });

  test("grows while somebody reads an older state, holds up no write, and begins again after that", async () => {
    reader.exec("begin");
    reader.prepare("select 1 from migration").get();
    const loading = load();
    const size = () => statSync(join(dataDir, `${DATABASE_FILE}-wal`)).size;
    await until(
      async () => size(),
      (bytes) => bytes > 3 * CHECKPOINT_PAGES * 4096,
    );
    reader.exec("commit");
    await begunAgain(1).finally(() => {
      isEnough = true;
    });
    await loading;
  });
});

test("a thread of maintenance that ends is replaced once the log has grown again", async () => {
  const file = join(dataDir, DATABASE_FILE);
  const link = join(temporaryFolder(), "link");
  // Nothing can be opened there yet.
  symlinkSync(join(dataDir, "absent", "absent"), link);
  const writing = new Database(file);
  const insert = writing.prepare("insert into fact (name, value) values (?, ?)");
  let count = 0;
  const grow = () => insert.run(`fact ${count++}`, "x".repeat(CHECKPOINT_PAGES * 4096));
  const maintenance = new Maintenance(link);
  const checkpoints = new Checkpoints(maintenance, writing);
  grow();
  await checkpoints.keepShort();
  rmSync(link);
  symlinkSync(file, link);
  await until(
    async () => {
      grow();
      await checkpoints.keepShort();
      return (writing.pragma("wal_checkpoint(NOOP)") as [{ checkpointed: number }])[0].checkpointed;
    },
    (pages) => pages > 0,
  );
  await checkpoints.close();
  await maintenance.close();
  writing.close();
});

test("a pass waits for its turn while the thread of maintenance is at another order", async () => {
  const file = join(dataDir, DATABASE_FILE);
  const writing = new Database(file);
  const maintenance = new Maintenance(file);
  const checkpoints = new Checkpoints(maintenance, writing);
  const copied = () => (writing.pragma("wal_checkpoint(NOOP)") as [{ checkpointed: number }])[0].checkpointed;
  writing
    .prepare("insert into fact (name, value) values ('large', ?)")
    .run("x".repeat(CHECKPOINT_PAGES * 4096));
  const started = maintenance.start();
  await checkpoints.keepShort();
  await started;
  expect(await maintenance.order({ start: true })).toEqual({});
  expect(copied()).toBe(0);
  await checkpoints.keepShort();
  await checkpoints.close();
  expect(copied()).toBeGreaterThan(0);
  await maintenance.close();
  writing.close();
});
