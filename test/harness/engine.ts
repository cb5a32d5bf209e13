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
  return (name, run) => test.skip(`${name} (skipped: ${reason})`, run); // Skipped on PostgreSQL: the test is of what SQLite alone has, which the reason names.
}
