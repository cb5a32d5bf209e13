import base from "./jest.config.mjs";

/** `npm run test:console`: the console in a real browser; it fails without Chromium. */
export default {
  ...base,
  roots: ["<rootDir>/test/console"],
  testPathIgnorePatterns: ["/node_modules/"],
  globalSetup: "<rootDir>/test/console/setup.ts",
  globalTeardown: "<rootDir>/test/harness/teardown.ts",
  // Each worker has a browser with processes of its own.
  maxWorkers: 2,
};
