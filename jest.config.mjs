import { availableParallelism } from "node:os";

export default {
  // Node loads the test files itself, as it loads the server: without a context, and without a transformer.
  runtime: "<rootDir>/test/jest/runtime.ts",
  testEnvironment: "<rootDir>/test/jest/environment.ts",
  transform: {},
  roots: ["<rootDir>/src", "<rootDir>/test"],
  testMatch: ["**/*.test.ts"],
  // Runs of their own: jest.clients.mjs for clients in other languages, jest.console.mjs for what needs a browser, jest.servers.mjs for servers that end, change or
  // are loaded, jest.isolation.mjs for what needs bubblewrap, jest.containers.mjs for what needs podman or docker.
  testPathIgnorePatterns: [
    "/node_modules/",
    "<rootDir>/test/clients/",
    "<rootDir>/test/console/",
    "<rootDir>/test/containers/",
    "<rootDir>/test/crash/",
    "<rootDir>/test/isolation/",
    "<rootDir>/test/load/",
    "<rootDir>/test/postgres/",
    "<rootDir>/test/proxy/",
    "<rootDir>/test/release/",
  ],
  reporters: ["default", "<rootDir>/jest.summary.mjs"],
  globalSetup: "<rootDir>/test/harness/memory-setup.ts",
  globalTeardown: "<rootDir>/test/harness/memory-teardown.ts",
  // Ends what hangs, and nothing that is slow because the machine is: a test that starts a server thirty times took 100
  // seconds on one machine and over 180 on another.
  testTimeout: 600_000,
  // Tests wait for servers of their own much of the time: two workers a processor keep the machine at work.
  maxWorkers: 2 * availableParallelism(),
  testSequencer: "<rootDir>/jest.sequencer.mjs",
  // The modules of ended test files are freed late: a worker grew to 2 GB, and then took too long to end.
  workerIdleMemoryLimit: "700MB",
};
