import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Ports that no system hands out by itself: below 32768, where Linux begins, and 49152, where macOS does. A port that it
 * hands out is another test's before long, while the caller that asked for it does not listen, not yet or not now.
 */
const [FIRST, END] = [20_000, 32_000];

/** Returns a port of the loopback address on which nothing listens, and which nobody gets who asks for any port. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
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
