import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { ROOT, runProgram } from "../harness/program.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

/** A test file that looks for what another one leaves, and leaves it. */
const TRACES = `
test("finds no traces", async () => {
  expect(process.env.LEFT).toBeUndefined();
  expect(process.env.HOME).toBeDefined();
  expect(process.env.XDG_CONFIG_HOME).toMatch(/chartroom-config-/);
  expect(existsSync(process.env.XDG_CONFIG_HOME)).toBe(false);
  expect(process.cwd()).toBe(import.meta.dirname);
  expect(process.hrtime).not.toHaveProperty("mock");
  expect(globalThis.queueMicrotask).not.toBe(undefined);
  await delay(1);
});
test("leaves traces", () => {
  process.env.LEFT = "1";
  delete process.env.HOME;
  mkdirSync(process.env.XDG_CONFIG_HOME);
  process.chdir("/");
  jest.spyOn(process, "hrtime");
  globalThis.queueMicrotask = undefined as never;
  jest.useFakeTimers();
});`;

/** Test files by name, with what jest is to tell of each: its status and the failures. */
const FILES: Readonly<Record<string, readonly [text: string, passed: number, failure?: RegExp]>> = {
  traces: [TRACES, 2],
  again: [TRACES, 2],
  wrong: [`test("t", () => expect(1).toBe(2));`, 0, /Expected: 2[\s\S]*\(wrong\.test\.ts:3:27\)/],
  absent: [`await import("./absent.ts");\ntest("t", () => undefined);`, 0, /Cannot find module/],
  garbled: [`test("t", () => {`, 0, /SyntaxError/],
  empty: ["", 0, /must contain at least one test/],
  hangs: [`test("t", () => new Promise(() => undefined), 200);`, 0, /Exceeded timeout of 200 ms/],
  rejects: [
    `test("t", async () => { Promise.reject(new Error("unhandled")); await delay(1); });`,
    0,
    /unhandled/,
  ],
  warns: [
    `test("t", () => { process.emitWarning("is deprecated", "DeprecationWarning"); return delay(50); });`,
    0,
    /is deprecated/,
  ],
  throws: [
    `test("t", () => { setImmediate(() => { throw new Error("late"); }); return delay(50); });`,
    0,
    /late/,
  ],
  cleans: [
    `afterAll(() => { throw new Error("not cleaned"); });\ntest("t", () => undefined);`,
    1,
    /not cleaned/,
  ],
};

afterAll(stopAll);

describe("a run of test files", () => {
  const results = new Map<string, { readonly passed: number; readonly message: string }>();
  let code: number | null = null;
  let lastLine = "";

  beforeAll(async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const imports =
      'import { existsSync, mkdirSync } from "node:fs"; import { setTimeout as delay } from "node:timers/promises";\n';
    const globals = 'import { afterAll, expect, jest, test } from "@jest/globals";\n';
    for (const [name, [text]] of Object.entries(FILES)) {
      writeFileSync(join(folder, `${name}.test.ts`), `${imports}${globals}${text}\n`);
    }
    const config = {
      rootDir: folder,
      testMatch: ["**/*.test.ts"],
      transform: {},
      testEnvironment: join(import.meta.dirname, "environment.ts"),
      runtime: join(import.meta.dirname, "runtime.ts"),
      reporters: [join(ROOT, "jest.summary.mjs")],
    };
    const args = [
      "--config",
      JSON.stringify(config),
      "--runInBand",
      "--json",
      "--outputFile",
      "results.json",
    ];
    const run = await runProgram(process.execPath, [join(ROOT, "node_modules/jest/bin/jest.js"), ...args], {
      cwd: folder,
    });
    code = run.code;
    lastLine = run.stdout.trim().split("\n").at(-1) ?? "";
    const { testResults } = JSON.parse(readFileSync(join(folder, "results.json"), "utf8"));
    for (const { name, message, assertionResults } of testResults) {
      const passed = assertionResults.filter(({ status }: { status: string }) => status === "passed").length;
      results.set(name.slice(folder.length + 1, -".test.ts".length), { passed, message });
    }
  });

  test.each(Object.entries(FILES))("%s", (name, [, passed, failure]) => {
    expect(results.get(name)?.passed).toBe(passed);
    expect(results.get(name)?.message).toMatch(failure ?? /^$/);
  });

  test("fails, and ends with the counts", () => {
    expect(code).toBe(1);
    expect(lastLine).toBe("5 passed, 9 failed, 0 skipped");
  });
});

test("helpers add hooks and tests only when they are called, since later test files do not load them again", () => {
  const files = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" });
  const helpers = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
  expect(helpers.length).toBeGreaterThan(50);
  const adding = /^(afterAll|afterEach|beforeAll|beforeEach|describe|test)\b/m;
  expect(helpers.filter((file) => adding.test(readFileSync(join(ROOT, "test", file), "utf8")))).toEqual([]);
});
