import type * as Globals from "@jest/globals";

type JestGlobals = typeof Globals;

/*
 * What test files and their helpers import as "@jest/globals". Each test file has its own; helpers that stay loaded
 * see the newest, since imports are bound to the variables.
 */
export let afterAll: JestGlobals["afterAll"];
export let afterEach: JestGlobals["afterEach"];
export let beforeAll: JestGlobals["beforeAll"];
export let beforeEach: JestGlobals["beforeEach"];
export let describe: JestGlobals["describe"];
export let expect: JestGlobals["expect"];
export let it: JestGlobals["it"];
export let jest: JestGlobals["jest"];
export let test: JestGlobals["test"];

/** Sets what the next test file imports. */
export function setGlobals(globals: JestGlobals): void {
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test } = globals);
}
