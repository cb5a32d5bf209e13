/**
 * A queue on Redis: BullMQ with its defaults, on the port in REDIS_PORT. Each of JOBS jobs is locked, appends two rows
 * to its log, and is completed. It leaves out everything that the server does in addition to the queue, such as plans,
 * environments, policies, tokens, audit and events.
 */
import { Queue, Worker } from "bullmq";
import { CONCURRENCY, playPeer } from "./play-peer.ts";

const { REDIS_PORT = "", JOBS = "" } = process.env;
const jobs = Number(JOBS);
const connection = { host: "127.0.0.1", port: Number(REDIS_PORT) };

const queue = new Queue("work", { connection });
for (let at = 0; at < jobs; at += 1_000) {
  const data = Array.from({ length: Math.min(1_000, jobs - at) }, (_, index) => ({ id: at + index }));
  await queue.addBulk(data.map((each) => ({ name: "work", data: each })));
}
await queue.close();

await playPeer(async () => {
  const all = Promise.withResolvers<void>();
  let left = jobs;
  const worker = new Worker(
    "work",
    async (job) => {
      for (const step of ["running", "done"]) await job.log(step);
    },
    { connection, concurrency: CONCURRENCY, autorun: false },
  );
  worker.on("completed", () => {
    left -= 1;
    if (left === 0) all.resolve();
  });
  worker.on("failed", () => all.reject(new Error("a job failed")));
  void worker.run();
  await all.promise;
  await worker.close();
});
