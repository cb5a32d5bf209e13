/**
 * A queue on PostgreSQL: graphile-worker with its defaults, on the database in DATABASE_URL. Each of JOBS jobs is
 * locked, writes two rows of progress in separate commits, and is removed. It leaves out everything that the server
 * does in addition to the queue, such as plans, environments, policies, tokens, audit and events.
 */
import { Logger, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { CONCURRENCY, playPeer } from "./play-peer.ts";

const { DATABASE_URL: connectionString = "", JOBS = "" } = process.env;
const jobs = Number(JOBS);

await runMigrations({ connectionString });
const client = new pg.Client({ connectionString });
await client.connect();
await client.query("create table progress (job integer, step integer, at timestamptz default now())");
await client.query(
  `select graphile_worker.add_job('work', json_build_object('id', id), queue_name => null)
  from generate_series(1, $1::integer) as id`,
  [jobs],
);
await client.end();

await playPeer(async () => {
  const all = Promise.withResolvers<void>();
  let left = jobs;
  const runner = await run({
    connectionString,
    maxPoolSize: CONCURRENCY,
    concurrency: CONCURRENCY,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    taskList: {
      async work({ id }, { withPgClient }) {
        for (const step of [1, 2]) {
          await withPgClient((db) =>
            db.query("insert into progress (job, step) values ($1, $2)", [id, step]),
          );
        }
        left -= 1;
        if (left === 0) all.resolve();
      },
    },
  });
  await all.promise;
  // Wait until the last jobs are removed.
  await runner.stop();
});
