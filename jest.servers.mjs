import base from "./jest.config.mjs";

/**
 * `npm run test:servers`: servers and runners that are killed at each moment, several servers over one PostgreSQL,
 * upgrades, faults of the database and the network, and reverse proxies before servers.
 */
export default {
  ...base,
  roots: ["<rootDir>/test/crash", "<rootDir>/test/postgres", "<rootDir>/test/proxy"],
  testPathIgnorePatterns: ["/node_modules/"],
};
