import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import {
  FinishWorkRequest_Outcome as Outcome,
  type ReportWorksRequest,
  ReportProgressRequest_StepProgress_State as State,
  type WorkReportResultSchema,
  WorkService,
} from "#gen/runner/v1/work_service_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { createWorkClient } from "./connection.ts";
import { Lease } from "./lease.ts";
import { createLeaseCalls } from "./lease-calls.ts";
import type { NextWork } from "./work-reports.ts";

const idOf = (number: number) => `01900000-0000-7000-8000-00000000000${number}`;
const inMs = (ms: number) => timestampFromMs(Date.now() + ms);
const goesOn = () => ({ expiresAt: inMs(60_000), stop: false });
const begun = { steps: [{ stepIndex: 0, state: State.RUNNING }] };
const ended = { steps: [{ stepIndex: 0, state: State.DONE }] };

/** Leases from a service with the given handlers. */
function leasesAt(
  service: Partial<ServiceImpl<typeof WorkService>>,
  count: number,
  next?: NextWork,
): Lease[] {
  const transport = createRouterTransport(({ service: add }) => add(WorkService, service));
  const calls = createLeaseCalls(createWorkClient(transport, "cr_run_x"), next);
  return Array.from(
    { length: count },
    (_, index) => new Lease(calls, { leaseId: idOf(index), fence: 1n, expiresAt: inMs(60_000) }),
  );
}

/** A service that records every report and accepts all of them. */
function agreeing() {
  const requests: ReportWorksRequest[] = [];
  const service: Partial<ServiceImpl<typeof WorkService>> = {
    reportWorks: (req) => {
      requests.push(req);
      return {
        results: req.reports.map(({ finish }) => ({
          result: finish ? { case: "finish", value: {} } : { case: "progress", value: goesOn() },
        })),
      };
    },
  };
  return { requests, service };
}

test("the reports of several leases go in one call, and those of one lease as one, with its end", async () => {
  const { requests, service } = agreeing();
  const [first, second] = leasesAt(service, 2) as [Lease, Lease];
  await Promise.all([
    first.report(begun, { mayWait: true }),
    first.report({ logs: [{ stepIndex: 0, offset: 0n, data: new Uint8Array(1) }] }, { mayWait: true }),
    first.report(ended, { mayWait: true }),
    second.report(begun, { mayWait: true }),
    first.finish({ outcome: Outcome.DONE }),
  ]);
  expect(requests).toHaveLength(1);
  expect(requests[0]?.reports).toMatchObject([
    {
      progress: {
        leaseId: idOf(0),
        steps: [{ state: State.RUNNING }, { state: State.DONE }],
        logs: [{ stepIndex: 0 }],
      },
      finish: { leaseId: idOf(0), outcome: Outcome.DONE },
    },
    { progress: { leaseId: idOf(1), steps: [{ state: State.RUNNING }] } },
  ]);
  second.giveUp();
});

test("each move says how long it has waited to be sent", async () => {
  const { requests, service } = agreeing();
  const [lease, other] = leasesAt(service, 2) as [Lease, Lease];
  const before = performance.now();
  // Sent after 20 ms at the earliest: nothing triggers it sooner.
  await Promise.all([lease.report(begun, { mayWait: true }), other.report(begun, { mayWait: true })]);
  const ago = requests[0]?.reports[0]?.progress?.steps[0]?.ago;
  expect(ago && durationMs(ago)).toBeGreaterThanOrEqual(15);
  expect(ago && durationMs(ago)).toBeLessThanOrEqual(performance.now() - before + 1);
  lease.giveUp();
  other.giveUp();
});

test("what the service refuses of several reports is found by sending each by itself", async () => {
  const refusal = { reason: ErrorReason.VALUE_UNUSABLE };
  const calls: string[] = [];
  const [lease] = leasesAt(
    {
      reportWorks: () => ({
        results: [{ result: { case: "error", value: { detail: refusal, message: "no such step" } } }],
      }),
      reportProgress: ({ logs }) => {
        calls.push(logs.length > 0 ? "log" : "step");
        if (logs.length === 0) return goesOn();
        throw new ConnectError("a gap", Code.InvalidArgument, undefined, [
          { desc: ErrorDetailSchema, value: create(ErrorDetailSchema, refusal) },
        ]);
      },
    },
    1,
  ) as [Lease];
  const [step, log] = await Promise.allSettled([
    lease.report(begun, { mayWait: true }),
    lease.report({ logs: [{ stepIndex: 0, offset: 9n, data: new Uint8Array(1) }] }),
  ]);
  expect([step?.status, log?.status, calls]).toEqual(["fulfilled", "rejected", ["step", "log"]]);
  lease.giveUp();
});

test("a server that does not know the call receives a report for each lease by itself, in order", async () => {
  const calls: string[] = [];
  const leases = leasesAt(
    {
      reportProgress: ({ leaseId }) => {
        calls.push(`report ${leaseId.at(-1)}`);
        return goesOn();
      },
      finishWork: ({ leaseId }) => {
        calls.push(`finish ${leaseId.at(-1)}`);
        return {};
      },
    },
    2,
  );
  await Promise.all(
    leases.flatMap((lease) => [
      lease.report(begun, { mayWait: true }),
      lease.report(ended, { mayWait: true }),
      lease.finish({ outcome: Outcome.DONE }),
    ]),
  );
  for (const number of [0, 1]) {
    expect(calls.filter((call) => call.endsWith(String(number)))).toEqual([
      `report ${number}`,
      `report ${number}`,
      `finish ${number}`,
    ]);
  }
});

test("a lost lease among others is lost alone, and an unreachable server keeps the order", async () => {
  let attempts = 0;
  const sent: unknown[] = [];
  const lost = new ConnectError("lost", Code.Aborted, undefined, [
    { desc: ErrorDetailSchema, value: create(ErrorDetailSchema, { reason: ErrorReason.LEASE_LOST }) },
  ]);
  const [kept, gone] = leasesAt(
    {
      // A single report uses the call for one lease.
      reportProgress: ({ leaseId }) => {
        if (leaseId === idOf(1)) throw lost;
        sent.push([leaseId.at(-1), [State.RUNNING], false]);
        return goesOn();
      },
      reportWorks: ({ reports }) => {
        attempts += 1;
        if (attempts === 1) throw new ConnectError("draining", Code.Unavailable);
        sent.push(
          ...reports.map(({ progress, finish }) => [
            (progress ?? finish)?.leaseId.at(-1),
            progress?.steps.map(({ state }) => state),
            finish !== undefined,
          ]),
        );
        return {
          results: reports.map(({ progress, finish }): MessageInitShape<typeof WorkReportResultSchema> => {
            if ((progress ?? finish)?.leaseId === idOf(1)) {
              const detail = { reason: ErrorReason.LEASE_LOST };
              return { result: { case: "error", value: { detail, message: "lost" } } };
            }
            return { result: finish ? { case: "finish", value: {} } : { case: "progress", value: goesOn() } };
          }),
        };
      },
    },
    2,
  ) as [Lease, Lease];
  const results = await Promise.allSettled([
    kept.report(begun),
    kept.report(ended),
    kept.finish({ outcome: Outcome.DONE }),
    gone.report(begun),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected"]);
  expect([gone.isLost, kept.isLost]).toEqual([true, false]);
  expect(sent).toContainEqual(["0", [State.RUNNING, State.DONE], true]);
});

test("the end of work asks for other work, which begins before the end is known", async () => {
  const order: string[] = [];
  const work = { leaseId: idOf(9), fence: 1n };
  const { service } = agreeing();
  const [first, second] = leasesAt(
    {
      reportWorks: (req, ctx) => ({ ...(service.reportWorks?.(req, ctx) as object), works: [work] }),
    },
    2,
    {
      request: (count) => (count > 0 ? { maxLeases: count } : undefined),
      take: (works) => order.push(`took ${works.length}`),
    },
  ) as [Lease, Lease];
  await Promise.all([
    first.finish({ outcome: Outcome.DONE }).then(() => order.push("ended")),
    second.report(begun),
  ]);
  expect(order).toEqual(["took 1", "ended"]);
  second.giveUp();
});
