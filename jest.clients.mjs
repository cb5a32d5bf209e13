import base from "./jest.config.mjs";

/** `npm run test:clients`: the packages, and clients in other languages, which need their tool chains. */
export default {
  ...base,
  roots: ["<rootDir>/test/clients"],
  testPathIgnorePatterns: ["/node_modules/"],
  globalSetup: "<rootDir>/test/harness/setup.ts",
  globalTeardown: "<rootDir>/test/harness/teardown.ts",
  // Compilers of other languages take memory and every processor themselves.
  maxWorkers: 1,
};
