import config from "./jest.config.mjs";

/**
 * Tests of one engine: of its file, its threads, its checkpoints and its index; of folders that are copied and changed
 * from outside; and those that count turns of the event loop, in which only that engine answers.
 */
const OF_SQLITE = [
  "test/services/search-row.test.ts",
  "test/services/search-thread.test.ts",
  "test/services/project/text-search.test.ts",
  "test/services/identity/organization-storage.test.ts",
  "test/services/record/audit-chain.test.ts",
  "test/services/agent/agent-wake.test.ts",
  "test/services/record/event-feed.test.ts",
  "test/services/runner/work-wait.test.ts",
];

/** The tests of rows and services, on PostgreSQL; `CHARTROOM_TEST_POSTGRES_BUILD=debian` takes Debian's. */
export default {
  ...config,
  roots: ["<rootDir>/test"],
  testMatch: [
    "<rootDir>/test/services/**/*.test.ts",
    "<rootDir>/test/store/{record,identity,workflow}/**/*.test.ts",
  ],
  testPathIgnorePatterns: [...config.testPathIgnorePatterns, ...OF_SQLITE],
  globalSetup: "<rootDir>/test/harness/postgres-setup.ts",
  globalTeardown: "<rootDir>/test/harness/postgres-teardown.ts",
};
