import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ReadOnlyStore } from "../store.ts";
import { openConnection } from "./connection.ts";
import { MIGRATIONS } from "./migrate.ts";
import { DATABASE_FILE } from "./open.ts";

/**
 * Opens the database of a data folder, or of a copy of one, without changing a row of it, and
 * without migrating it to this release.
 * @throws Error with a sentence for the operator when there is none, or when another release wrote
 * it
 */
export function openReadOnly(dataDir: string): ReadOnlyStore {
  const file = join(dataDir, DATABASE_FILE);
  if (!existsSync(file)) throw new Error(`the folder ${dataDir} holds no ${DATABASE_FILE}`);
  const { raw, db, close } = openConnection(file, "reader");
  try {
    const done = raw.prepare<[], { name: string }>("select name from migration order by position").all();
    const newest = MIGRATIONS.at(-1)?.name;
    if (done.at(-1)?.name !== newest) {
      throw new Error(
        `the database in ${dataDir} is not of this release: start the server with it once, or use the release that wrote it`,
      );
    }
    raw.exec("begin");
    return { reader: db, close };
  } catch (error) {
    close();
    throw error;
  }
}
