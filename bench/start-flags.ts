import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The Node flags of `npm start`, which the measured servers are started with as well. */
export const START_FLAGS = flagsOf(
  JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8")).scripts.start,
);

function flagsOf(script: string): string {
  const flags = /\bnode ((?:-\S+ )*)bin\/chartroom\.js serve$/.exec(script)?.[1];
  if (flags === undefined) throw new Error("package.json starts the server in another way");
  return flags.trim();
}
