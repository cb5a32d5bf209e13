import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ModernFakeTimers } from "@jest/fake-timers";
import { ModuleMocker } from "jest-mock";
import { DISK_VARIABLE, isAboutDisks } from "../harness/memory.ts";

interface Configuration {
  readonly projectConfig: ConstructorParameters<typeof ModernFakeTimers>[0]["config"];
}

interface TestFile {
  readonly testPath: string;
}

/** What happens in jest-circus; here only what ends a test is of interest. */
interface TestEvent {
  readonly name: string;
  readonly test?: { readonly errors: readonly unknown[] };
}

/** Runs a test file among the worker's own globals, and restores what it has changed for the next file. */
export default class SharedGlobals {
  readonly global = globalThis;
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly fakeTimers = null;
  readonly fakeTimersModern: ModernFakeTimers;
  readonly #globals = Object.getOwnPropertyDescriptors(globalThis);
  readonly #variables = { ...process.env };
  readonly #folder = process.cwd();
  readonly #exit = process.exit;
  /** Where commands of the file keep the credentials of a login: never in the folder of the person who runs the tests. */
  readonly #configHome = join(tmpdir(), `chartroom-config-${randomUUID()}`);

  constructor({ projectConfig }: Configuration, { testPath }: TestFile) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    const disk = process.env[DISK_VARIABLE];
    if (disk !== undefined && isAboutDisks(testPath)) process.env.TMPDIR = disk;
    process.env.XDG_CONFIG_HOME = this.#configHome;
  }

  /** Lets the use of what Node or a package is about to remove fail the test. */
  async setup(): Promise<void> {
    process.throwDeprecation = true;
  }

  async teardown(): Promise<void> {
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    restore(globalThis, this.#globals);
    process.exit = this.#exit;
    if (process.cwd() !== this.#folder) process.chdir(this.#folder);
    for (const name of Object.keys(process.env)) {
      if (!(name in this.#variables)) delete process.env[name];
    }
    Object.assign(process.env, this.#variables);
    rmSync(this.#configHome, { recursive: true, force: true });
  }

  /** Lets failures name files by their paths: frames of modules have URLs, which jest takes for paths. */
  handleTestEvent({ name, test }: TestEvent): void {
    if (name !== "test_done") return;
    for (const error of test?.errors.flat() ?? []) {
      if (error instanceof Error) error.stack = error.stack?.replaceAll("file:///", "/") ?? "";
    }
  }

  exportConditions(): string[] {
    return ["node", "node-addons"];
  }

  /** Returns none: there is no context other than the worker's own. */
  getVmContext(): null {
    return null;
  }
}

/** Restores the properties that an object had. What was added stays: modules that stay loaded may have added it. */
function restore(target: object, properties: PropertyDescriptorMap): void {
  for (const key of Reflect.ownKeys(properties)) {
    const before = properties[key as string];
    const now = Object.getOwnPropertyDescriptor(target, key);
    if (before && (now?.value !== before.value || now?.get !== before.get)) {
      Object.defineProperty(target, key, before);
    }
  }
}
