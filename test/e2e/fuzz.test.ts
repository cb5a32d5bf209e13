import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "../fuzz/json-value.ts";
import { type FuzzRequest, type FuzzTarget, randomRequest } from "../fuzz/request.ts";
import { createSender, type Sender } from "../fuzz/send.ts";
import { judge, type Outcome } from "../fuzz/verdict.ts";
import { printedRandom, type Random } from "../harness/random.ts";
import { withRawData } from "../harness/raw-data.ts";
import { startServer, stopAll, type TestServer } from "../harness/server.ts";
import { everyOperation, type NamedOperation } from "./every-operation.ts";
import { makeWorld, type World } from "./world.ts";

/** Rounds share no resources: what one deleted is there again in the next. */
const ROUNDS = 4;
const REQUESTS_AN_OPERATION = 30;
/** Requests under way at the same time. */
const CLIENTS = 8;
const SHOWN_FAILURES = 5;
/** Each kind of outcome comes far more often than this in every protocol. */
const SELDOM = 20;

/** It answers when there is work, up to a minute later; what it refuses is tested with the runners. */
const WAITS = "WorkService/LeaseWork";

const random = printedRandom("fuzz");
let server: TestServer;
let sender: Sender;
beforeAll(async () => {
  server = await startServer({ args: ["--removal-interval", "1", "--popularity-interval", "1"] });
  sender = createSender(server.port);
});
afterAll(async () => {
  sender.close();
  await stopAll();
});

/** A policy that one round has set could forbid the next one to make its world. */
const forgetPolicies = () =>
  withRawData(server.dataDir, (raw) => raw.run("delete from organization_policies"));

/** Mostly the id that the field is meant for, so that requests get past the door. */
function idSource(choice: Random, { ids }: NamedOperation, world: World): FuzzTarget["idOf"] {
  const all = Object.values(world).filter((value) => !value.startsWith("cr_"));
  return (path) => {
    const kind = ids[path];
    return kind && choice.chance(0.85) ? world[kind] : choice.pick(all);
  };
}

/** Everything that it takes to send the same again. */
function replay({ http, path, headers, body }: FuzzRequest): string {
  const given = JSON.stringify(headers);
  return `SEED=${random.seed}\nHTTP/${http} POST ${path}\n${given}\nbody in base64: ${body.toString("base64")}`;
}

/** The outcome, or what is wrong with the answer. */
async function fire(request: FuzzRequest, token: string): Promise<Outcome | Error> {
  try {
    return judge(request, await sender.send(request, token));
  } catch (error) {
    return new Error(`${(error as Error).message}\n${replay(request)}`);
  }
}

describe("whatever callers send", () => {
  test("no answer blames the server, and the server lives", async () => {
    const outcomes = new Map<string, number>();
    const failures: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await forgetPolicies();
      const world = await makeWorld(server);
      // A stream goes on until its client leaves; what it refuses is tested where streams are.
      const unary = everyOperation().filter(
        ([name, { method }]) => method.methodKind === "unary" && name !== WAITS,
      );
      const queue = unary.flatMap(([name, operation]) => {
        const choice = random.fork(`${name} ${round}`);
        const target = {
          method: operation.method,
          example: operation.request(world) as JsonObject,
          idOf: idSource(choice, operation, world),
        };
        const token = operation.token?.(world) ?? server.token;
        return Array.from({ length: REQUESTS_AN_OPERATION }, () => ({
          request: randomRequest(choice, target),
          token,
        }));
      });
      const requests = random.fork(`order ${round}`).some(queue, queue.length);
      const client = async () => {
        for (let next = requests.pop(); next; next = requests.pop()) {
          const { request } = next;
          const outcome = await fire(request, next.token);
          if (typeof outcome !== "number") {
            failures.push(outcome.message);
            continue;
          }
          const key = `${request.protocol} HTTP/${request.http} ${Code[outcome] ?? "ok"}`;
          outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
    }

    expect(failures.slice(0, SHOWN_FAILURES)).toEqual([]);
    expect([server.process.exitCode, server.process.signalCode]).toEqual([null, null]);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    expect(server.log().filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
    // A run that reached nothing would prove nothing.
    const seldom = ["connect", "grpc", "grpc-web"].flatMap((protocol) =>
      ["1.1", "2"].flatMap((http) =>
        ["ok", "InvalidArgument", "NotFound"]
          .map((code) => `${protocol} HTTP/${http} ${code}`)
          .filter((key) => (outcomes.get(key) ?? 0) < SELDOM),
      ),
    );
    expect(seldom).toEqual([]);
  });
});
