import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, repository } from "../harness/call.ts";
import { testOnSqlite } from "../harness/engine.ts";
import { type EventReceiver, type ReceivedEvent, startEventReceiver } from "../harness/event-receiver.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { type PostgresCluster, startPostgres } from "../harness/postgres-cluster.ts";
import { emptyDatabase } from "../harness/postgres-store.ts";
import { startServer, stopAll } from "../harness/server.ts";
import { startServers } from "../harness/several-servers.ts";
import { until } from "../harness/until.ts";

/** A server, or what a client needs of one. */
interface Reachable {
  readonly url: string;
  readonly token: string;
}

let receiver: EventReceiver;
let cluster: PostgresCluster | undefined;
beforeAll(async () => {
  receiver = await startEventReceiver();
});
afterAll(async () => {
  await stopAll();
  await receiver.stop();
  await cluster?.stop();
});

const args = () => ["--webhook-private-hosts", receiver.host, "--log-level", "error"];
async function subscribe(server: Reachable, path: string): Promise<string> {
  const request = { name: "Ships", url: receiver.url(path), eventKinds: ["project.created"] };
  const operation = "EventSubscriptionService/CreateEventSubscription";
  return (await succeeded(post(server, operation, request))).eventSubscription.id;
}
const createProject = (server: Reachable, name: string) =>
  succeeded(
    post(server, "ProjectService/CreateProject", {
      name,
      initializer: repository("https://git.example.org/team/ship.git"),
    }),
  );
/** Returns the ledger of a subscription, the oldest entry first, once everything in it was taken. */
async function deliveredLedger(server: Reachable, eventSubscriptionId: string, count: number) {
  const operation = "EventSubscriptionService/ListEventDeliveries";
  const pagination = { pageSize: 100 };
  const read = async (): Promise<Answer["body"][]> =>
    (await succeeded(post(server, operation, { eventSubscriptionId, pagination }))).eventDeliveries;
  const found = await until(
    read,
    (entries) =>
      entries.length === count && entries.every(({ state }) => state === "EVENT_DELIVERY_STATE_DELIVERED"),
  );
  return found.toReversed();
}
const idOf = ({ headers }: { readonly headers: Readonly<Record<string, string>> }) => headers["webhook-id"];

/** Returns what a delivery says but its link, which has the port of the server. */
function eventOf({ body }: ReceivedEvent) {
  const { data, ...event } = JSON.parse(body);
  const { url: _, ...facts } = data;
  return { ...event, ...facts };
}

describe("a server that is killed", () => {
  testOnSqlite("its database is a file")(
    "between a delivery and its record sends the event again, with the same id, and others once",
    async () => {
      const path = "/killed/one";
      let server = await startServer({ args: args() });
      const { dataDir, token } = server;
      const id = await subscribe(server, path);
      await createProject(server, "before");
      await receiver.arrived(path, 1);
      await deliveredLedger(server, id, 1);
      const gone = Promise.withResolvers<void>();
      receiver.answer(path, { status: 204, after: gone.promise });
      await createProject(server, "during");
      await receiver.arrived(path, 2);
      await server.kill();
      gone.resolve();
      server = { ...(await startServer({ dataDir, args: args() })), token };
      await createProject(server, "after");
      const arrived = await receiver.arrived(path, 4);
      const entries = await deliveredLedger(server, id, 3);
      const [before, during, again, after] = arrived;
      expect(again && during && [idOf(again), eventOf(again)]).toEqual([
        during && idOf(during),
        during && eventOf(during),
      ]);
      expect([before, again, after].map((each) => each && idOf(each))).toEqual(
        entries.map((each) => each.id),
      );
      // The attempt whose end nobody has noted is in no ledger.
      expect(entries.map(({ attempts }) => attempts.length)).toEqual([1, 1, 1]);
      expect(receiver.at(path)).toHaveLength(4);
      await server.stop();
    },
  );

  testOnSqlite("its database is a file")(
    "right after a target has taken an event sends it once or twice, and never another",
    async () => {
      const path = "/killed/two";
      let server = await startServer({ args: args() });
      const { dataDir, token } = server;
      const id = await subscribe(server, path);
      for (const kill of [1, 2, 3]) {
        const count = receiver.at(path).length;
        await createProject(server, `project ${kill}`);
        await receiver.arrived(path, count + 1);
        await server.kill();
        server = { ...(await startServer({ dataDir, args: args() })), token };
        await deliveredLedger(server, id, kill);
      }
      const entries = await deliveredLedger(server, id, 3);
      const ids = receiver.at(path).map(idOf);
      expect([...new Set(ids)]).toEqual(entries.map((each) => each.id));
      expect(ids.length).toBeLessThanOrEqual(6);
      await server.stop();
    },
  );
});

test("of two servers over one database one sends, each event once, and the other goes on where that was killed", async () => {
  cluster = await startPostgres("embedded");
  const url = await emptyDatabase(cluster);
  const [one, other] = await startServers(url, 2, { args: args() });
  if (!one || !other) throw new Error("a server has not started");
  const paths = ["/several/a", "/several/b"];
  const [first = "", second = ""] = [
    await subscribe(one, "/several/a"),
    await subscribe(other, "/several/b"),
  ];
  const names = Array.from({ length: 20 }, (_, index) => `project ${index}`);
  await Promise.all(names.map((name, index) => createProject(index % 2 ? one : other, name)));
  for (const [index, path] of paths.entries()) {
    const entries = await deliveredLedger(other, index === 0 ? first : second, names.length);
    expect(receiver.at(path).map(idOf)).toEqual(entries.map((each) => each.id));
    const sequences = receiver.at(path).map(({ body }) => Number(JSON.parse(body).data.sequence));
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
    expect(entries.every(({ attempts }) => attempts.length === 1)).toBe(true);
  }
  const gone = Promise.withResolvers<void>();
  receiver.answer("/several/a", { status: 204, after: gone.promise });
  await createProject(other, "during");
  await receiver.arrived("/several/a", names.length + 1);
  await receiver.arrived("/several/b", names.length + 1);
  await deliveredLedger(other, second, names.length + 1);
  // The first one leads the jobs, so it is the one that waits for the answer.
  await one.kill();
  gone.resolve();
  await createProject(other, "after");
  const entries = await deliveredLedger(other, first, names.length + 2);
  const last = receiver.at("/several/a").slice(names.length).map(idOf);
  const [during, after] = entries.slice(-2).map((each) => each.id);
  expect(last).toEqual([during, during, after]);
  await deliveredLedger(other, second, names.length + 2);
  expect(receiver.at("/several/b")).toHaveLength(names.length + 2);
  await other.stop();
});
