import { parentPort, workerData } from "node:worker_threads";
import pg from "pg";

/** Creates databases for a thread that waits meanwhile. */
const { url } = workerData as { readonly url: string };
const client = new pg.Client({ connectionString: `${url}/postgres` });
const connected = client.connect();

parentPort?.on("message", async ({ name, done }: { readonly name: string; readonly done: Int32Array }) => {
  let result = 1;
  try {
    await connected;
    await client.query(`create database ${name} template chartroom_template strategy file_copy`);
  } catch (error) {
    process.stderr.write(`${error}\n`);
    result = 2;
  }
  Atomics.store(done, 0, result);
  Atomics.notify(done, 0);
});
