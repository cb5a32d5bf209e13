import { test } from "@jest/globals";
import { postgresUrl } from "./postgres-database.ts";
import type { DefineTest } from "./program.ts";

/**
 * Defines tests of SQLite alone, in files of which all others run on both engines. In a run on PostgreSQL they are
 * skipped, and their names say why.
 *
 * @param reason completes "skipped:", such as "it looks into the file of the database"
 */
export function testOnSqlite(reason: string): DefineTest {
  if (postgresUrl() === undefined) return test;
  const skip = test.skip; // PostgreSQL does not have what these tests are of: the reason names it, and the name of each test shows it.
  return (name, run) => skip(`${name} (skipped: ${reason})`, run);
}
