import { once } from "node:events";

/** Jobs that are worked on at the same time: as many as the slots of the runners that the server is measured with. */
export const CONCURRENCY = 32;

/** Says that the jobs are there, works on them when asked to, and says that it has. */
export async function playPeer(work: () => Promise<void>): Promise<void> {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  await work();
  process.stdout.write("done\n");
  // Its processor time is read before it ends.
  await once(process.stdin, "end");
  process.exit(0);
}
