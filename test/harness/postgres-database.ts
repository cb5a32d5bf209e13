import { Worker } from "node:worker_threads";
import pg from "pg";
import { TEMPLATE, URL_VARIABLE } from "./postgres-template.ts";

/** The address of the server that the set-up of a run has started; undefined in a run on SQLite. */
export const postgresUrl = (): string | undefined => process.env[URL_VARIABLE];

let worker: Worker | undefined;
let made = 0;

/**
 * Creates a database with the tables of this release, and waits for it: stores of tests are opened synchronously, as
 * those on SQLite are.
 * @param template the name of a database that nobody uses; by default an empty one with the tables of this release
 * @returns its address
 */
export function createDatabase(url: string, template = TEMPLATE): string {
  worker ??= new Worker(new URL("./postgres-worker.ts", import.meta.url), { workerData: { url } });
  worker.unref();
  made += 1;
  const name = `test_${process.pid}_${made}_${Date.now()}`;
  const done = new Int32Array(new SharedArrayBuffer(4));
  worker.postMessage({ name, template, done });
  Atomics.wait(done, 0, 0);
  if (done[0] !== 1) throw new Error(`the database ${name} could not be created`);
  return `${url}/${name}`;
}

/** Removes databases that {@link createDatabase} made, and ends the connections to them. */
export async function dropDatabases(urls: readonly string[]): Promise<void> {
  const [first] = urls;
  if (first === undefined) return;
  const client = new pg.Client({ connectionString: new URL("/postgres", first).href });
  await client.connect();
  try {
    for (const url of urls) await client.query(`drop database if exists ${nameOf(url)} with (force)`);
  } finally {
    await client.end();
  }
}

/** Returns the name of the database at an address. */
export const nameOf = (url: string): string => new URL(url).pathname.slice(1);
