import base from "./jest.config.mjs";

/**
 * `npm run test:isolation`: what work in a sandbox tries to reach, and a release where there is nothing else, with real
 * bubblewrap; it fails without it.
 */
export default {
  ...base,
  roots: ["isolation", "release"].map((folder) => `<rootDir>/test/${folder}`),
  testPathIgnorePatterns: ["/node_modules/"],
  globalSetup: "<rootDir>/test/harness/setup.ts",
  globalTeardown: "<rootDir>/test/harness/teardown.ts",
};
