import { test } from "@jest/globals";
import { postgresUrl } from "./postgres-database.ts";

/**
 * A test that runs on SQLite alone: it interferes with the database in that engine's own words, such as a trigger that
 * fails, or counts turns of the event loop in which only that engine answers.
 */
export function testOnSqlite(name: string, run: () => Promise<void>): void {
  const define = postgresUrl() === undefined ? test : test.skip; // It interferes in that engine's own words.
  define(name, run);
}
