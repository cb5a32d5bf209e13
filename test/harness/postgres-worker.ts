import { parentPort, workerData } from "node:worker_threads";
import pg from "pg";

/** Creates databases for a thread that waits meanwhile. */
const { url } = workerData as { readonly url: string };
const client = new pg.Client({ connectionString: `${url}/postgres` });
const connected = client.connect();

interface Order {
  readonly name: string;
  readonly template: string;
  /** Gets 1 once the database is there, and 2 when it could not be made. */
  readonly done: Int32Array;
}

parentPort?.on("message", async ({ name, template, done }: Order) => {
  let result = 1;
  try {
    await connected;
    await client.query(`create database ${name} template ${template} strategy file_copy`);
  } catch (error) {
    process.stderr.write(`${error}\n`);
    result = 2;
  }
  Atomics.store(done, 0, result);
  Atomics.notify(done, 0);
});
