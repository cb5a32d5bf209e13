import base from "./jest.config.mjs";

/** `npm run test:containers`: what work in a container tries to reach, with a real podman or docker; it fails without one. */
export default {
  ...base,
  roots: ["<rootDir>/test/containers"],
  testPathIgnorePatterns: ["/node_modules/"],
  globalSetup: "<rootDir>/test/harness/setup.ts",
  globalTeardown: "<rootDir>/test/harness/teardown.ts",
};
