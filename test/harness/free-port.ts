import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Ports that no system hands out by itself: below 32768, where Linux begins, and 49152, where macOS does. A port that it
 * hands out is another test's before long, while the caller that asked for it does not listen, not yet or not now.
 */
const FIRST = 20_000;
/** Each worker has its own ports: another's test may be about to listen on one that is still free. */
const [WORKERS, PORTS_EACH] = [24, 500];

/** Two runs next to each other number their workers alike; their parent processes tell them apart. */
const worker = (Number(process.env.JEST_WORKER_ID ?? 0) + process.ppid) % WORKERS;
const firstOwn = FIRST + worker * PORTS_EACH;
let last = randomInt(PORTS_EACH);

/** Returns a port of the loopback address on which nothing listens, and which nobody gets who asks for any port. */
export async function freePort(): Promise<number> {
  for (;;) {
    // The next one each time: a file's first server may not listen on its port yet when it asks for another.
    last = (last + 1) % PORTS_EACH;
    const port = firstOwn + last;
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
