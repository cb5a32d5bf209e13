import { afterAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { printedRandom, type Random } from "../harness/random.ts";
import { untilForgotten } from "../harness/raw-data.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { compare, createLedger, type Ledger } from "./ledger.ts";
import { countEvents, readDescriptions, rowProblems } from "./rows.ts";
import { readState } from "./state.ts";
import { type Client, nextWrite, type Write } from "./writes.ts";

const KILLS = 30;
const CLIENTS = 8;
/** Writes that are answered before a kill; on average half of it, so that a slow machine writes no less. */
const MOST_ANSWERS = 60;
/** Jobs write alongside the requests. */
const ARGS = ["--removal-interval", "1", "--popularity-interval", "1", "--log-level", "error"];

afterAll(stopAll);

/** One organization: who writes there, and what was acknowledged to them. */
interface Tenant {
  readonly token: string;
  readonly ledger: Ledger;
  readonly clients: readonly Client[];
}

function tenant(token: string, names: readonly string[]): Tenant {
  const clients = names.map((name) => ({
    name,
    projects: new Set<string>(),
    environments: new Set<string>(),
    count: 0,
  }));
  return { token, ledger: createLedger(), clients };
}

/** Writes one thing after the other until the server is gone; the write that got no answer. */
async function writeUntilKilled(
  random: Random,
  { url }: Pick<TestServer, "url">,
  { token, ledger }: Tenant,
  client: Client,
  onAnswer: () => void,
): Promise<Write> {
  for (;;) {
    const write = nextWrite(random, ledger, client);
    const answer = await post({ url, token }, write.operation, write.request).catch(() => undefined);
    if (!answer) return write;
    if (answer.status !== 200) {
      throw new Error(
        `${write.operation} ${JSON.stringify(write.request)} answered ${JSON.stringify(answer.body)}`,
      );
    }
    write.acknowledge(answer.body);
    onAnswer();
  }
}

describe("a server that is killed at any moment", () => {
  test(`keeps every acknowledged write, and each other one wholly or not at all, ${KILLS} times`, async () => {
    const random = printedRandom("kill");
    let server = await startServer({ args: ARGS });
    const { dataDir } = server;
    const other = await addOrganization(server, "other");
    const names = Array.from({ length: CLIENTS }, (_, index) => `client ${index}`);
    const tenants = [tenant(server.token, names.slice(2)), tenant(other.token, names.slice(0, 2))];
    let lost = 0;
    let answered = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const writing = tenants.flatMap((each) =>
        each.clients.map(async (client) => ({
          each,
          write: await writeUntilKilled(random.fork(`${client.name} ${kill}`), server, each, client, () => {
            answered += 1;
          }),
        })),
      );
      const enough = answered + random.integer(0, MOST_ANSWERS);
      // The moment is the point: no event could tell it.
      const moment = async () => {
        await until(
          async () => answered,
          (count) => count >= enough,
        );
        await new Promise((resolve) => setTimeout(resolve, random.integer(0, 50)));
      };
      await Promise.race([moment(), Promise.all(writing)]);
      await server.kill();
      await untilForgotten(dataDir);
      const unanswered = await Promise.all(writing);
      expect(await rowProblems(dataDir)).toEqual([]);

      server = await startServer({ dataDir, args: ARGS });
      const descriptions = await readDescriptions(dataDir);
      for (const each of tenants) {
        const state = await readState(server, each.token);
        for (const { write } of unanswered.filter((one) => one.each === each))
          write.resolve(state, descriptions);
        compare(each.ledger, state, descriptions);
      }
      lost += unanswered.length;
    }
    expect(lost).toBe(KILLS * CLIENTS);
    expect(await countEvents(dataDir)).toBeGreaterThan(KILLS * CLIENTS);
    expect(await rowProblems(dataDir)).toEqual([]);
  });
});
