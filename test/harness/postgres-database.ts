import { Worker } from "node:worker_threads";

/** Name of the database that the set-up of a run migrates, and that each database of a test is a copy of. */
export const TEMPLATE = "chartroom_template";

/** The address of the server that the set-up of a run has started; undefined in a run on SQLite. */
export const postgresUrl = (): string | undefined => process.env.CHARTROOM_TEST_POSTGRES;

let worker: Worker | undefined;
let made = 0;

/**
 * Creates a database with the tables of this release, and waits for it: stores of tests are opened synchronously, as
 * those on SQLite are.
 * @returns its address
 */
export function createDatabase(url: string): string {
  worker ??= new Worker(new URL("./postgres-worker.ts", import.meta.url), { workerData: { url } });
  worker.unref();
  made += 1;
  const name = `test_${process.pid}_${made}_${Date.now()}`;
  const done = new Int32Array(new SharedArrayBuffer(4));
  worker.postMessage({ name, done });
  Atomics.wait(done, 0, 0);
  if (done[0] !== 1) throw new Error(`the database ${name} could not be created`);
  return `${url}/${name}`;
}
