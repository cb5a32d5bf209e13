import { createInterface } from "node:readline";
import { Maintenance } from "../../src/store/sqlite/checkpoint/maintenance-thread.ts";

// A process with the maintenance thread of a database file: for each line it merges the index of texts and
// prints the result.

const maintenance = new Maintenance(process.argv[2] ?? "");
for await (const _ of createInterface({ input: process.stdin })) {
  const answer = await maintenance.order({ mergePages: 16 });
  process.stdout.write(`${JSON.stringify(answer ?? null)}\n`);
}
