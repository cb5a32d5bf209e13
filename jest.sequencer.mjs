import { statSync } from "node:fs";

/**
 * Folders whose tests start processes and wait for them; all others last for seconds. The tests of git are first: to start
 * a process takes 2 ms of processor time from a small worker, and 6 from one that has grown to 500 MB. Before them comes
 * the short file whose one test opens all pages of the console: it lasts longer than any other of that run.
 */
const LONG = [
  "test/console/pages.test.ts",
  "test/runner/",
  "test/crash/",
  "test/load/",
  "test/proxy/",
  "test/postgres/",
  "test/e2e/",
  "test/rpc/",
  "test/http/",
];

/**
 * Begins with the tests that last longest, so that none of them is left when the others have ended. Jest itself knows
 * how long tests lasted only where it has run before.
 */
export default class Sequencer {
  sort(tests) {
    const keyed = tests.map((test) => {
      const rank = LONG.findIndex((part) => test.path.includes(`/${part}`));
      return { test, rank: rank === -1 ? LONG.length : rank, bytes: statSync(test.path).size };
    });
    keyed.sort((one, other) => one.rank - other.rank || other.bytes - one.bytes);
    return keyed.map(({ test }) => test);
  }

  shard(tests, { shardIndex, shardCount }) {
    return this.sort(tests).filter((_, index) => index % shardCount === shardIndex - 1);
  }

  allFailedTests(tests) {
    return tests;
  }

  cacheResults() {}
}
