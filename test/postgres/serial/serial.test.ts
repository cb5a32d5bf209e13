import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type OpenData, openData } from "../../../src/commands/open-data.ts";
import { dataConfigOf } from "../../harness/data-config.ts";
import { LONG_LEASES } from "../../harness/lease.ts";
import { type PostgresCluster, startPostgres } from "../../harness/postgres-cluster.ts";
import { emptyDatabase } from "../../harness/postgres-store.ts";
import { printedRandom } from "../../harness/random.ts";
import { stopAll, type TestServer } from "../../harness/server.ts";
import { startServers } from "../../harness/several-servers.ts";
import { newStages, runProgram } from "./round.ts";
import { type Answered, describeOperations, findSerialOrder } from "./serial-order.ts";

const SERVERS = 4;
const CLIENTS = 4;
const ROUNDS = 150;

let cluster: PostgresCluster;
let servers: TestServer[];
let data: OpenData;
beforeAll(async () => {
  cluster = await startPostgres("embedded", ["fsync=off", "max_connections=200"]);
  servers = await startServers(await emptyDatabase(cluster), SERVERS, { args: LONG_LEASES });
  data = await openData(dataConfigOf(servers[0]?.dataDir ?? ""));
});
afterAll(async () => {
  await data?.store.close();
  await stopAll();
  await cluster?.stop();
});

test("some serial order explains every answer of random programs at four servers", async () => {
  const random = printedRandom("serial order");
  let operations = 0;
  let overlapping = 0;
  const answers = new Map<string, number>();
  const first = servers[0] as TestServer;
  for (let round = 0; round < ROUNDS; round++) {
    const name = `round-${round}`;
    const stages = await newStages(data, first, name);
    const clients = await runProgram(random.fork(name), servers, stages, CLIENTS);
    if (!findSerialOrder(clients)) {
      throw new Error(
        `no serial order explains round ${round} of SEED=${random.seed}:\n${describeOperations(clients)}`,
      );
    }
    const all = clients.flat();
    operations += all.length;
    overlapping += all.filter((one) => all.some((other) => areTogether(one, other))).length;
    for (const { operation, answer } of all) {
      const outcome = `${operation.kind} ${/^[A-Z_]+$|^done$|^nothing$/.test(answer) ? answer : "yields"}`;
      answers.set(outcome, (answers.get(outcome) ?? 0) + 1);
    }
  }
  const counted = [...answers].sort().map(([outcome, count]) => `${outcome} ${count}`);
  process.stdout.write(
    `${operations} operations, of which ${overlapping} overlapped another: ${counted.join(", ")}\n`,
  );
  // Otherwise the programs would show nothing.
  expect(overlapping).toBeGreaterThan(operations / 2);
}, 600_000);

const areTogether = (one: Answered, other: Answered) =>
  one !== other && one.beganMs < other.endedMs && other.beganMs < one.endedMs;

describe("the search for a serial order", () => {
  const at = (
    beganMs: number,
    endedMs: number,
    answer: string,
    operation: Answered["operation"],
  ): Answered => ({
    operation,
    server: 0,
    answer,
    beganMs,
    endedMs,
  });
  const create = { kind: "create", place: 0 } as const;
  const limit = { kind: "limit", place: 0, limit: 1 } as const;

  test("finds the one of operations that overlap", () => {
    const [denied, made] = [at(1, 9, "POLICY_DENIED", create), at(0, 8, "done", create)];
    const limited = at(0, 9, "done", limit);
    expect(findSerialOrder([[denied], [made], [limited]])).toEqual(expect.arrayContaining([denied]));
  });

  test("finds none where two were answered as if each were the first", () => {
    const both = [at(2, 9, "done", create), at(3, 9, "done", create)];
    expect(findSerialOrder([[at(0, 1, "done", limit)], ...both.map((each) => [each])])).toBeUndefined();
  });

  test("finds none that turns back time", () => {
    const late = at(5, 6, "POLICY_DENIED", create);
    expect(findSerialOrder([[late], [at(7, 8, "done", limit)], [at(0, 1, "done", create)]])).toBeUndefined();
  });
});
