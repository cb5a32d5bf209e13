import base from "./jest.config.mjs";

/**
 * `npm run test:servers`: servers and runners that are killed at each moment, several servers over one PostgreSQL,
 * upgrades, faults of the database and the network, reverse proxies before servers, and the most that callers may send
 * at once.
 */
export default {
  ...base,
  roots: ["crash", "load", "postgres", "proxy"].map((folder) => `<rootDir>/test/${folder}`),
  testPathIgnorePatterns: ["/node_modules/"],
  globalSetup: "<rootDir>/test/harness/setup.ts",
  globalTeardown: "<rootDir>/test/harness/teardown.ts",
};
