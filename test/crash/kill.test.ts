import { afterAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { printedRandom, type Random } from "../harness/random.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { compare, createLedger, type Ledger } from "./ledger.ts";
import { countEvents, readDescriptions, rowProblems } from "./rows.ts";
import { readState } from "./state.ts";
import { type Client, nextWrite, type Write } from "./writes.ts";

const KILLS = 30;
const CLIENTS = 8;
/** Jobs write beside the requests. */
const ARGS = ["--removal-interval", "1", "--popularity-interval", "1", "--log-level", "error"];

afterAll(stopAll);

/** Writes one thing after the other until the server is gone; the write that got no answer. */
async function writeUntilKilled(
  random: Random,
  server: Pick<TestServer, "url">,
  token: string,
  ledger: Ledger,
  client: Client,
): Promise<Write> {
  for (;;) {
    const write = nextWrite(random, ledger, client);
    const answer = await post({ ...server, token }, write.operation, write.request).catch(() => undefined);
    if (!answer) return write;
    if (answer.status !== 200) {
      throw new Error(
        `${write.operation} ${JSON.stringify(write.request)} answered ${JSON.stringify(answer.body)}`,
      );
    }
    write.acknowledge(answer.body);
  }
}

describe("a server that is killed at any moment", () => {
  test(`keeps every acknowledged write, and each other one wholly or not at all, ${KILLS} times`, async () => {
    const random = printedRandom("kill");
    const ledger = createLedger();
    const clients = Array.from({ length: CLIENTS }, (_, index) => ({
      name: `client ${index}`,
      projects: new Set<string>(),
      environments: new Set<string>(),
      count: 0,
    }));
    let server = await startServer({ args: ARGS });
    const { dataDir, token } = server;
    let lost = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const writing = clients.map((client) =>
        writeUntilKilled(random.fork(`${client.name} ${kill}`), server, token, ledger, client),
      );
      // The moment is the point: no event could tell it.
      await Promise.race([
        new Promise((resolve) => setTimeout(resolve, random.integer(20, 700))),
        Promise.all(writing),
      ]);
      await server.kill();
      const unanswered = await Promise.all(writing);
      expect(rowProblems(dataDir)).toEqual([]);

      server = await startServer({ dataDir, args: ARGS });
      const descriptions = readDescriptions(dataDir);
      const state = await readState(server, token);
      for (const write of unanswered) write.resolve(state, descriptions);
      compare(ledger, state, descriptions);
      lost += unanswered.length;
    }
    expect(lost).toBe(KILLS * CLIENTS);
    expect(countEvents(dataDir)).toBeGreaterThan(KILLS * CLIENTS * 5);
    expect(rowProblems(dataDir)).toEqual([]);
  }, 120_000);
});
