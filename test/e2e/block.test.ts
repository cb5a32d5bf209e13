import { Agent, request } from "node:http";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { post, reasonOf } from "../harness/call.ts";
import { insertTestMember, type TestMember, withServerData } from "../harness/member.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";

const BLOCKS = 200;
const CLIENTS = 50;
/** Accounts that the clients act for, and that are blocked in turn. */
const PEOPLE = 10;
/** So many answers to one account's clients hold some that were asked for after the first of them came. */
const ANSWERS = (2 * CLIENTS) / PEOPLE;

/** On a fast machine these clients are refused more often than an address may be. */
const LIMITS = ["--rate-limits", "off"];

let server: TestServer;
let people: TestMember[];
beforeAll(async () => {
  server = await startServer({ args: LIMITS });
  const { organizationId } = (await post(server, "IdentityService/GetAuthenticatedIdentity")).body;
  people = await withServerData(server, async (store, keys) => {
    const made: TestMember[] = [];
    for (let each = 0; each < PEOPLE; each++) {
      made.push(await insertTestMember(store, keys, { organizationId, email: `person${each}@example.org` }));
    }
    return made;
  });
});
afterAll(stopAll);

/** What a client saw of one call. Times by performance.now(). */
interface Seen {
  readonly accountId: string;
  readonly begun: number;
  readonly ended: number;
  readonly status: number;
}

/** When the answer to a block came, and when the account was about to be unblocked. */
interface Cut {
  readonly accountId: string;
  readonly from: number;
  readonly until: number;
}

test("of 200 blocks under the load of 50 clients, none lets a request begun after its answer succeed", async () => {
  const load = startLoad();
  const cuts: Cut[] = [];
  /** Blocks one account again and again while its clients go on calling. */
  const blocksOf = async ({ accountId }: TestMember) => {
    for (let each = 0; each < BLOCKS / PEOPLE; each++) {
      const reason = `block ${each}`;
      const { status } = await post(server, "AccountService/BlockAccount", { accountId, reason });
      const from = performance.now();
      expect(status).toBe(200);
      await load.answered(accountId);
      cuts.push({ accountId, from, until: performance.now() });
      expect((await post(server, "AccountService/UnblockAccount", { accountId })).status).toBe(200);
      await load.answered(accountId);
    }
  };
  const seen = await Promise.all(people.map(blocksOf)).then(load.stop, async (error) => {
    await load.stop();
    throw error;
  });
  // A call that was still under way when the account was unblocked may have come after that.
  const isCut = ({ accountId, begun, ended }: Seen) =>
    cuts.some((cut) => cut.accountId === accountId && begun >= cut.from && ended <= cut.until);
  const afterBlock = seen.filter(isCut);
  expect(cuts).toHaveLength(BLOCKS);
  expect(afterBlock.length).toBeGreaterThanOrEqual((BLOCKS * CLIENTS) / PEOPLE);
  expect(afterBlock.filter(({ status }) => status !== 403)).toEqual([]);
  expect(seen.filter(({ status }) => status === 200).length).toBeGreaterThan(BLOCKS);
  expect(seen.filter(({ status }) => status !== 200 && status !== 403)).toEqual([]);
});

test("nor does one after a restart of the server", async () => {
  const halves = [people.slice(0, PEOPLE / 2), people.slice(PEOPLE / 2)] as const;
  const load = startLoad();
  for (const { accountId } of halves[0]) {
    const { status } = await post(server, "AccountService/BlockAccount", { accountId, reason: "for good" });
    expect(status).toBe(200);
  }
  await load.stop();
  await server.kill();
  const { token } = server;
  server = { ...(await startServer({ dataDir: server.dataDir, args: LIMITS })), token };
  const tell = async (of: readonly TestMember[]) =>
    Promise.all(of.map((each) => post(server, "IdentityService/GetAuthenticatedIdentity", {}, each.token)));
  for (const answer of await tell(halves[0])) {
    expect([answer.status, reasonOf(answer)]).toEqual([403, "ACCOUNT_BLOCKED"]);
  }
  expect((await tell(halves[1])).map(({ status }) => status)).toEqual(halves[1].map(() => 200));
});

/** Clients that call without a pause, each on a connection of its own and each for one account. */
function startLoad() {
  const seen: Seen[] = [];
  const waiting = new Set<{ accountId: string; left: number; resolve: () => void }>();
  let stopping = false;
  const run = async (person: TestMember, index: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    // One in five writes, since a write has its own way past the gate.
    const operation = index % 5 === 0 ? "ProjectService/CreateProject" : "ProjectService/ListProjects";
    const body = index % 5 === 0 ? NEW_PROJECT : '{"pagination":{"pageSize":1}}';
    while (!stopping) {
      const begun = performance.now();
      const status = await call(agent, operation, body, person.token);
      seen.push({ accountId: person.accountId, begun, ended: performance.now(), status });
      for (const each of waiting) {
        if (each.accountId !== person.accountId || --each.left > 0) continue;
        waiting.delete(each);
        each.resolve();
      }
    }
    agent.destroy();
  };
  const clients = Array.from({ length: CLIENTS }, (_, index) =>
    run(people[index % PEOPLE] as TestMember, Math.floor(index / PEOPLE)),
  );
  return {
    /** Waits until the clients of an account had a few more answers. */
    answered: (accountId: string) =>
      new Promise<void>((resolve) => void waiting.add({ accountId, left: ANSWERS, resolve })),
    async stop(): Promise<Seen[]> {
      stopping = true;
      await Promise.all(clients);
      return seen;
    },
  };
}

const NEW_PROJECT = JSON.stringify({
  initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/hello.git" } }] },
});

function call(agent: Agent, operation: string, body: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const req = request(
      `${server.url}/api/service.v1.${operation}`,
      {
        method: "POST",
        agent,
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          authorization: `Bearer ${token}`,
        },
      },
      (res) => {
        res.resume();
        res.on("end", () => resolve(res.statusCode ?? 0));
        res.on("error", reject);
      },
    );
    req.on("error", reject);
    req.end(body);
  });
}
