import base from "./jest.config.mjs";

/** `npm run test:isolation`: what work in a sandbox tries to reach, with real bubblewrap; it fails without it. */
export default {
  ...base,
  roots: ["<rootDir>/test/isolation"],
  testPathIgnorePatterns: ["/node_modules/"],
};
