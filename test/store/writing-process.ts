import { createInterface } from "node:readline";
import { v7 } from "uuid";
import { builderOf } from "../../src/store/query-builder.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { type StoreUnavailable, SYSTEM } from "../../src/store/store.ts";

// A process with a store: for each line it writes some facts at once and prints the result as JSON.

const [, , dataDir = "", organizationId = ""] = process.argv;
const store = openStore({
  dataDir,
  now: () => 0,
  newId: v7,
  audit: { keyId: "test", mac: () => new Uint8Array(32) },
  groupMs: Number.POSITIVE_INFINITY,
});
let commits = 0;
store.onCommit(() => {
  commits += 1;
});

function write(name: string, bytes: number): Promise<void> {
  return store.write(SYSTEM, "test", async (tx) => {
    await builderOf(tx.db)
      .insertInto("fact")
      .values({ name, value: "x".repeat(bytes) })
      .execute();
    tx.record({ organizationId, type: "project", id: name, kind: "created", after: "{}" });
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { names, bytes }: { names: string[]; bytes: number } = JSON.parse(line);
  const before = commits;
  const outcomes = await Promise.allSettled(names.map((name) => write(name, bytes)));
  const areListenersCalled = commits > before;
  const problem = store.problem();
  await store.probe();
  const answers = outcomes.map((outcome) => {
    if (outcome.status === "fulfilled") return "taken";
    const { name, problem: why, cause } = outcome.reason as StoreUnavailable;
    return [name, why, (cause as { code?: string }).code];
  });
  const facts = await builderOf(store.reader).selectFrom("fact").select("name").orderBy("name").execute();
  const found = facts.map(({ name }) => name);
  process.stdout.write(
    `${JSON.stringify({ answers, areListenersCalled, problem, afterProbe: store.problem(), found })}\n`,
  );
}
