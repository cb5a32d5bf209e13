import { test } from "@jest/globals";
import { postgresUrl } from "./postgres-database.ts";

/**
 * A test that runs on SQLite alone: it interferes with the database in that engine's own words, such as a trigger that
 * fails, or counts turns of the event loop in which only that engine answers.
 */
export const testOnSqlite: typeof test = postgresUrl() === undefined ? test : (test.skip as typeof test);
