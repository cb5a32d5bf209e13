import base from "./jest.config.mjs";

/**
 * `npm run test:servers`: several servers over one PostgreSQL, upgrades, faults of the database and the network, and
 * reverse proxies before them.
 */
export default {
  ...base,
  roots: ["<rootDir>/test/postgres", "<rootDir>/test/proxy"],
  testPathIgnorePatterns: ["/node_modules/"],
};
