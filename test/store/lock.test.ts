import { chmodSync, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { lockFolder } from "../../src/store/sqlite/lock.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { endNodes, startNode } from "../harness/node-process.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import { AUDIT } from "./record/audit-seal.ts";

afterAll(async () => {
  await endNodes();
  await stopAll();
});

/** Takes the lock at an instant that several processes are given, says whether it has it, and keeps it until it reads a line. */
const HOLDER = `
  import { lockFolder } from "./src/store/sqlite/lock.ts";
  const [, folder] = process.argv;
  print("ready");
  for (let at = await nextLine(); at; at = await nextLine()) {
    while (performance.timeOrigin + performance.now() < Number(at));
    const lock = lockFolder(folder);
    print(lock !== undefined);
    await nextLine();
    lock?.release();
    print("released");
  }
`;

async function startHolder(folder: string) {
  const holder = startNode(HOLDER, folder);
  await holder.next();
  return holder;
}

const NOW = "0";

describe("the lock of a data folder", () => {
  test("is held by one process and refused to every other", async () => {
    const folder = temporaryFolder();
    const holder = await startHolder(folder);
    const other = await startHolder(folder);
    holder.send(NOW);
    expect(await holder.next()).toBe(true);
    other.send(NOW);
    expect(await other.next()).toBe(false);
    expect(lockFolder(folder)).toBeUndefined();
  });

  test("is refused a second time inside of the process that holds it, too", () => {
    const folder = temporaryFolder();
    const lock = lockFolder(folder);
    expect(lock).toBeDefined();
    expect(lockFolder(folder)).toBeUndefined();
    lock?.release();
  });

  test("is free again when its holder lets go", async () => {
    const folder = temporaryFolder();
    const lock = lockFolder(folder);
    lock?.release();
    const holder = await startHolder(folder);
    holder.send(NOW);
    expect(await holder.next()).toBe(true);
    holder.send("release");
    expect(await holder.next()).toBe("released");
    const again = lockFolder(folder);
    expect(again).toBeDefined();
    again?.release();
  });

  test("is free again when its holder is killed without a chance to tidy up", async () => {
    const folder = temporaryFolder();
    const holder = await startHolder(folder);
    holder.send(NOW);
    expect(await holder.next()).toBe(true);
    await holder.kill();
    const lock = lockFolder(folder);
    expect(lock).toBeDefined();
    lock?.release();
  });

  test("goes to exactly one of several processes that ask at the same instant", async () => {
    const folder = temporaryFolder();
    const holders = await Promise.all(Array.from({ length: 3 }, () => startHolder(folder)));
    for (let round = 0; round < 50; round++) {
      const at = performance.timeOrigin + performance.now() + 2;
      for (const holder of holders) holder.send(String(at));
      const held = await Promise.all(holders.map((holder) => holder.next()));
      expect(held.filter(Boolean)).toHaveLength(1);
      for (const holder of holders) holder.send("release");
      await Promise.all(holders.map((holder) => holder.next()));
    }
  });

  test("makes the folder, for its owner alone, when there is none", () => {
    const folder = join(temporaryFolder(), "new", "data");
    lockFolder(folder)?.release();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder)).toEqual(["server.lock"]);
  });

  test("has a file for its owner alone, also where an earlier release made it", () => {
    const folder = temporaryFolder();
    const [file, journal] = [join(folder, "server.lock"), join(folder, "server.lock-journal")];
    const modes = () => [file, journal].map((each) => statSync(each).mode & 0o777);
    const first = lockFolder(folder);
    expect(modes()).toEqual([0o600, 0o600]);
    first?.release();
    chmodSync(file, 0o644);
    const again = lockFolder(folder);
    expect(modes()).toEqual([0o600, 0o600]);
    again?.release();
  });

  test("of another folder is another lock", () => {
    const locks = [lockFolder(temporaryFolder()), lockFolder(temporaryFolder())];
    expect(locks).not.toContain(undefined);
    for (const lock of locks) lock?.release();
  });

  test("does not keep commands of the command line from the database", async () => {
    const folder = temporaryFolder();
    const lock = lockFolder(folder);
    const store = openStore({ dataDir: folder, now: () => 0, newId: () => "", audit: AUDIT });
    expect(await builderOf(store.reader).selectFrom("organization").selectAll().execute()).toEqual([]);
    await store.close();
    lock?.release();
  });

  test("tells a problem of the folder itself as what it is", () => {
    const folder = temporaryFolder();
    const file = join(folder, "server.lock", "in-the-way");
    expect(existsSync(file)).toBe(false);
    lockFolder(join(folder, "server.lock"))?.release();
    expect(() => lockFolder(folder)).toThrow("unable to open database file");
  });
});
