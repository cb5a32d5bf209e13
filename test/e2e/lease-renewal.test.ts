import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { RenewLeasesRequest } from "#gen/runner/v1/work_service_pb.js";
import { createWorkClient } from "../../src/runner/protocol/connection.ts";
import { createLeaseCalls } from "../../src/runner/protocol/lease-calls.ts";
import { type Leased, registerRunner } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution } from "../harness/started-execution.ts";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
afterAll(stopAll);

test("leases are renewed in calls of 64 at most, and 65 in one call are refused", async () => {
  const runner = await registerRunner(server);
  for (let executions = 0; executions < 3; executions++) await startExecution(server, { actions: 22 });
  const works: Leased[] = [];
  while (works.length < 66) {
    const [work, ...more] = await runner.lease({ maxLeases: 32, wait: "30s" });
    if (!work) throw new Error(`the runner was given ${works.length} works only`);
    works.push(work, ...more);
  }
  const names = works.map(({ leaseId, fence }) => ({ leaseId, fence: BigInt(fence) }));
  const calls: [method: string, leases: number][] = [];
  const count: Interceptor = (next) => (req) => {
    const { leases } = req.message as unknown as Partial<RenewLeasesRequest>;
    calls.push([req.method.name, leases?.length ?? 1]);
    return next(req);
  };
  const transport = createConnectTransport({
    baseUrl: `${server.url}/api`,
    httpVersion: "1.1",
    interceptors: [count],
  });
  const client = createWorkClient(transport, runner.token);
  const { renewals } = createLeaseCalls(client);

  const renewed = await Promise.all(names.map((name) => renewals.add(name)));
  expect(calls.map(([, leases]) => leases).toSorted((one, other) => other - one)).toEqual([64, 2]);
  expect(new Set(calls.map(([method]) => method))).toEqual(new Set(["RenewLeases"]));
  for (const { expiresAt, stop } of renewed) expect([expiresAt === undefined, stop]).toEqual([false, false]);

  const answers = (await client.renewLeases({ leases: names.slice(0, 64) })).renewals;
  expect(answers.map(({ result }) => result.case)).toEqual(Array(64).fill("renewed"));
  const refused = await client.renewLeases({ leases: names.slice(0, 65) }).catch((error) => error);
  expect(refused).toBeInstanceOf(ConnectError);
  expect((refused as ConnectError).code).toBe(Code.InvalidArgument);

  // One that is lost is refused by itself, in the call with the others.
  const settled = await Promise.allSettled(
    names.map((name, at) => renewals.add(at === 10 ? { ...name, fence: 9n } : name)),
  );
  expect(settled.flatMap(({ status }, at) => (status === "rejected" ? [at] : []))).toEqual([10]);
});
