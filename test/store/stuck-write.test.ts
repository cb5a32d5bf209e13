import { afterAll, expect, test } from "@jest/globals";
import { endNodes, startNode } from "../harness/node-process.ts";
import { stopAll } from "../harness/server.ts";
import { factsIn, openAt, openWithOrganizations } from "./made-up-changes.ts";

afterAll(async () => {
  await endNodes();
  await stopAll();
});

/** Opens the store that it is given, and writes what waits for nothing that will come. */
const STUCK = `
  import { openStore } from "./src/store/sqlite/open.ts";
  const audit = { keyId: "test", mac: () => new Uint8Array(32) };
  const store = openStore({ dataDir: await nextLine(), now: () => 0, newId: () => "", audit });
  const insert = (name) => (tx) => tx.db.insertInto("fact").values({ name, value: "" }).execute();
  const actor = { id: "test", principal: 0 };
  await store.write(actor, "test", insert("before"));
  const stuck = store.write(actor, "test", async (tx) => {
    await insert("early")(tx);
    await new Promise(() => {});
  });
  store.write(actor, "test", insert("behind")).then(() => print("went on"));
  print("begun");
  await stuck;
`;

test("a write that never settles ends the process, and neither it nor what waits behind it is kept", async () => {
  const { dataDir, store } = await openWithOrganizations();
  await store.close();
  const node = startNode(STUCK);
  node.send(dataDir);
  expect(await node.next()).toBe("begun");
  await expect(node.next()).rejects.toThrow("a write has not settled for 2000 ms");
  const left = openAt(dataDir);
  expect(await factsIn(left)).toEqual(["before"]);
  await left.close();
});
