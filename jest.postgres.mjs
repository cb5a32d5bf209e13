import config from "./jest.config.mjs";
import { leftOutOnPostgres } from "./test/harness/left-out-on-postgres.ts";

/** Folders whose tests read and write rows, alone or through a server. */
const FOLDERS = ["crash", "e2e", "load", "rpc", "services", "store"];

/** The tests of everything that stores, on PostgreSQL; `CHARTROOM_TEST_POSTGRES_BUILD=debian` takes Debian's. */
export default {
  ...config,
  roots: FOLDERS.map((folder) => `<rootDir>/test/${folder}`),
  testPathIgnorePatterns: ["/node_modules/", ...leftOutOnPostgres().map((file) => `<rootDir>/${file}`)],
  globalSetup: "<rootDir>/test/harness/postgres-setup.ts",
  globalTeardown: "<rootDir>/test/harness/postgres-teardown.ts",
};
