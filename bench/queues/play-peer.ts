import { once } from "node:events";

/** Number of concurrent jobs: the total slots of the runners that the server is measured with. */
export const CONCURRENCY = 32;

/** Announces that the jobs are queued, processes them on request, and announces the end. */
export async function playPeer(work: () => Promise<void>): Promise<void> {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  await work();
  process.stdout.write("done\n");
  // Stay alive until the parent has read the processor time.
  await once(process.stdin, "end");
  process.exit(0);
}
