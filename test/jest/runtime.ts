import { createRequire, enableCompileCache, flushCompileCache, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type SharedGlobals from "./environment.ts";
import { setGlobals } from "./globals.ts";

const require = createRequire(import.meta.url);
/** Descriptions of the symbols under which jest-circus keeps the state of a test file and its settings. */
const KEPT_BY_JEST = /^(JEST_STATE_SYMBOL|EVENT_HANDLERS|TEST_TIMEOUT_SYMBOL|.*RETRY.*)$/;
const GLOBALS = new URL("./globals.ts", import.meta.url).href;

enableCompileCache(join(import.meta.dirname, "../../node_modules/.cache/compile"));
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "@jest/globals" ? { url: GLOBALS, shortCircuit: true } : next(specifier, context),
});

/** How often a file has been loaded in this process: more than once where jest watches files. */
const loads = new Map<string, number>();

/**
 * Loads test files as Node itself does, instead of compiling all their modules in a context of their own: Node keeps
 * what it compiles, and the files of one worker share their modules.
 */
export default class NativeRuntime {
  readonly #environment: SharedGlobals;

  constructor(_config: unknown, environment: SharedGlobals) {
    this.#environment = environment;
  }

  unstable_shouldLoadAsEsm(): boolean {
    return true;
  }

  async unstable_importModule(path: string): Promise<unknown> {
    const count = loads.get(path) ?? 0;
    loads.set(path, count + 1);
    return import(`${pathToFileURL(path)}${count === 0 ? "" : `?${count}`}`);
  }

  requireModule(path: string): unknown {
    return require(path);
  }

  /** Loads again the part of jest that keeps the tests of one file, and removes what it has kept of the last. */
  requireInternalModule(path: string): unknown {
    delete require.cache[path];
    for (const key of Object.getOwnPropertySymbols(globalThis)) {
      if (KEPT_BY_JEST.test(key.description ?? "")) Reflect.deleteProperty(globalThis, key);
    }
    return require(path);
  }

  setGlobalsForRuntime(globals: object): void {
    const { moduleMocker, fakeTimersModern: timers } = this.#environment;
    const jest = {
      fn: moduleMocker.fn.bind(moduleMocker),
      spyOn: moduleMocker.spyOn.bind(moduleMocker),
      useFakeTimers: timers.useFakeTimers.bind(timers),
      useRealTimers: timers.useRealTimers.bind(timers),
      advanceTimersByTimeAsync: timers.advanceTimersByTimeAsync.bind(timers),
    };
    setGlobals({ ...globals, jest } as never);
  }

  enterTestCode(): void {}
  leaveTestCode(): void {}

  getSourceMaps(): null {
    return null;
  }

  getAllCoverageInfoCopy(): undefined {
    return undefined;
  }

  teardown(): void {
    flushCompileCache();
  }
}
