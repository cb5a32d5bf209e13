import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import { AgentWorkService } from "#gen/runner/v1/agent_work_service_pb.js";
import { FinishWorkRequest_Outcome as Outcome, WorkService } from "#gen/runner/v1/work_service_pb.js";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { createWorkClient } from "./connection.ts";
import { Lease, WorkInterrupted } from "./lease.ts";
import { createLeaseCalls } from "./lease-calls.ts";

const LEASE_ID = "01900000-0000-7000-8000-000000000001";
const inMs = (ms: number) => timestampFromMs(Date.now() + ms);
const refusal = (code: Code, reason: ErrorReason) =>
  new ConnectError("no", code, undefined, [
    { desc: ErrorDetailSchema, value: create(ErrorDetailSchema, { reason }) },
  ]);
const lost = refusal(Code.Aborted, ErrorReason.LEASE_LOST);

/** A lease from a service with the given handlers, valid for `holdsMs` until the first response. */
function leaseAt(service: Partial<ServiceImpl<typeof WorkService>>, holdsMs: number): Lease {
  const transport = createRouterTransport(({ service: add }) => add(WorkService, service));
  return new Lease(createLeaseCalls(createWorkClient(transport, "cr_run_x")), {
    leaseId: LEASE_ID,
    fence: 7n,
    expiresAt: inMs(holdsMs),
  });
}

const interrupted = (lease: Lease) =>
  new Promise<unknown>((resolve) => {
    lease.signal.addEventListener("abort", () => resolve(lease.signal.reason.interruption));
  });

test("a lease is renewed by its name before it runs out, until it is finished", async () => {
  const renewals: unknown[] = [];
  const third = Promise.withResolvers<void>();
  const lease = leaseAt(
    {
      renewLease: ({ leaseId, fence }, { requestHeader }) => {
        renewals.push([leaseId, fence, requestHeader.get("authorization")]);
        if (renewals.length === 3) third.resolve();
        return { expiresAt: inMs(1_100) };
      },
      finishWork: () => ({}),
    },
    1_100,
  );
  await third.promise;
  await lease.finish({ outcome: Outcome.DONE });
  const count = renewals.length;
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect(renewals.length).toBe(count);
  expect(renewals[0]).toEqual([LEASE_ID, 7n, "Bearer cr_run_x"]);
  expect([lease.signal.aborted, lease.isLost]).toEqual([false, false]);
});

test("a renewal that says to stop ends the work, and it can still be reported and finished", async () => {
  const calls: string[] = [];
  const lease = leaseAt(
    {
      renewLease: () => ({ expiresAt: inMs(30_000), stop: true }),
      reportProgress: ({ logs }) => {
        calls.push(`report of ${logs.length}`);
        return { expiresAt: inMs(30_000), stop: true };
      },
      finishWork: ({ outcome }) => {
        calls.push(`finish ${outcome}`);
        return {};
      },
    },
    1,
  );
  expect(await interrupted(lease)).toBe("stop");
  lease.interrupt("drain");
  expect(lease.signal.reason.interruption).toBe("stop");
  await lease.report({ logs: [{ stepIndex: 0, offset: 0n, data: new Uint8Array(1) }] });
  await lease.finish({ outcome: Outcome.STOPPED });
  expect(calls).toEqual(["report of 1", "finish 3"]);
});

test("a renewal out of turn says at once that the work must end", async () => {
  const lease = leaseAt({ renewLease: () => ({ expiresAt: inMs(30_000), stop: true }) }, 30_000);
  await lease.renew();
  expect(lease.signal.reason.interruption).toBe("stop");
  lease.giveUp();
  await lease.renew();
  expect(lease.isLost).toBe(false);
});

test("a report that says to stop ends the work", async () => {
  const lease = leaseAt({ reportProgress: () => ({ expiresAt: inMs(30_000), stop: true }) }, 30_000);
  await lease.report({});
  expect(lease.signal.reason.interruption).toBe("stop");
  lease.interrupt("lost");
});

test("a renewal that asks for the slot ends the work for a time, and a stop after it changes nothing", async () => {
  const ends: Outcome[] = [];
  const lease = leaseAt(
    {
      renewLease: () => ({ expiresAt: inMs(30_000), giveBack: true }),
      finishWork: ({ outcome }) => {
        ends.push(outcome);
        return {};
      },
    },
    1,
  );
  expect(await interrupted(lease)).toBe("rest");
  lease.interrupt("stop");
  expect(lease.signal.reason.interruption).toBe("rest");
  await lease.finish({ outcome: Outcome.RELEASED });
  expect(ends).toEqual([Outcome.RELEASED]);
});

test.each([
  ["the lease is another's", lost],
  ["the account behind the work is blocked", refusal(Code.PermissionDenied, ErrorReason.ACCOUNT_BLOCKED)],
  ["the runner's token holds no longer", refusal(Code.Unauthenticated, ErrorReason.UNAUTHENTICATED)],
])("once %s the work is lost, and nothing more is reported about it", async (_, error) => {
  let calls = 0;
  const lease = leaseAt(
    {
      reportProgress: () => {
        calls++;
        throw error;
      },
      finishWork: () => {
        calls++;
        return {};
      },
    },
    30_000,
  );
  await expect(lease.report({})).rejects.toMatchObject({ interruption: "lost" });
  expect([lease.signal.reason.interruption, lease.isLost]).toEqual(["lost", true]);
  await expect(lease.finish({ outcome: Outcome.DONE })).rejects.toBeInstanceOf(WorkInterrupted);
  expect(calls).toBe(1);
});

test("a call is repeated while the server is away", async () => {
  let calls = 0;
  const lease = leaseAt(
    {
      reportProgress: () => {
        calls++;
        if (calls === 1) throw new ConnectError("draining", Code.Unavailable);
        // A broken connection has the code of a lost lease, but not its reason.
        if (calls === 2) throw new ConnectError("connection reset", Code.Aborted);
        return { expiresAt: inMs(30_000) };
      },
    },
    30_000,
  );
  await lease.report({});
  expect([calls, lease.signal.aborted]).toEqual([3, false]);
  lease.interrupt("lost");
});

test("a server that is away longer than the lease holds has lost the work", async () => {
  const away = () => {
    throw new ConnectError("away", Code.Unavailable);
  };
  const before = performance.now();
  const lease = leaseAt({ reportProgress: away, renewLease: away }, 1_000);
  await expect(lease.report({})).rejects.toMatchObject({ interruption: "lost" });
  expect(performance.now() - before).toBeGreaterThan(990);
  expect(performance.now() - before).toBeLessThan(15_000);
});

test("what the service refuses is not sent again, and the work goes on", async () => {
  let calls = 0;
  const lease = leaseAt(
    {
      reportProgress: () => {
        calls++;
        throw refusal(Code.InvalidArgument, ErrorReason.VALUE_UNUSABLE);
      },
    },
    30_000,
  );
  await expect(lease.report({})).rejects.toMatchObject({ code: Code.InvalidArgument });
  expect([calls, lease.signal.aborted]).toEqual([1, false]);
  lease.interrupt("lost");
});

test("a credential is asked for by the lease; none, or one that is withheld, is no failure", async () => {
  const lease = leaseAt(
    {
      getHostCredential: ({ leaseId, fence, host }) => {
        if (host === "withheld.example.org") {
          throw refusal(Code.FailedPrecondition, ErrorReason.CREDENTIAL_WITHHELD);
        }
        if (host !== "git.example.org") throw refusal(Code.NotFound, ErrorReason.NOT_FOUND);
        return { token: `${leaseId} ${fence}` };
      },
    },
    30_000,
  );
  expect(await lease.credential("git.example.org")).toMatchObject({ token: `${LEASE_ID} 7` });
  expect(await lease.credential("withheld.example.org")).toEqual({ withheld: expect.any(String) });
  expect(await lease.credential("other.example.org")).toBeUndefined();
  lease.interrupt("lost");
});

/** Follows the stream of inputs from a service with the given handlers, until it ends after an input called "last". */
async function followed(
  streamInputs: ServiceImpl<typeof AgentWorkService>["streamInputs"],
  stops: () => boolean = () => false,
) {
  const end = new AbortController();
  const ids: (string | undefined)[] = [];
  const transport = createRouterTransport(({ service: add }) => {
    add(AgentWorkService, { streamInputs });
    add(WorkService, {
      renewLease: () => {
        if (ids.at(-1) === "last") end.abort();
        return { expiresAt: inMs(30_000), stop: stops() };
      },
    });
  });
  const name = { leaseId: LEASE_ID, fence: 7n, expiresAt: inMs(30_000) };
  const lease = new Lease(createLeaseCalls(createWorkClient(transport, "cr_run_x")), name);
  const read = async () => {
    const handed = lease.follow((client, held, options) => client.streamInputs(held, options), end.signal);
    for await (const { input } of handed) ids.push(input?.id);
  };
  const failure = await read().then(
    () => undefined,
    (error) => error,
  );
  const { signal, isLost } = lease;
  const stopped = signal.aborted;
  lease.interrupt("lost");
  return { ids, failure, stopped, isLost };
}

test("a stream is opened again when it ends or breaks, until nobody wants more of it", async () => {
  let opened = 0;
  const { ids, failure, isLost } = await followed(async function* ({ leaseId, fence }) {
    opened++;
    yield { input: { id: `${leaseId} ${fence} ${opened}` } };
    if (opened === 2) throw new ConnectError("away", Code.Unavailable);
    if (opened === 3) yield { input: { id: "last" } };
  });
  expect(ids).toEqual([1, 2, 3].map((each) => `${LEASE_ID} 7 ${each}`).concat("last"));
  expect([failure, isLost]).toEqual([undefined, false]);
});

test("a stream that ends has the lease asked whether to stop", async () => {
  let opened = 0;
  const { stopped } = await followed(
    async function* () {
      opened++;
      if (opened === 2) yield { input: { id: "last" } };
    },
    () => opened === 1,
  );
  expect(stopped).toBe(true);
});

test("a stream that finds the lease lost ends, and the work with it", async () => {
  // biome-ignore lint/correctness/useYield: a stream that fails before its first message
  const { failure, isLost } = await followed(async function* () {
    throw lost;
  });
  expect([failure, isLost]).toEqual([undefined, true]);
});

test("a stream that the service refuses ends with why", async () => {
  // biome-ignore lint/correctness/useYield: a stream that fails before its first message
  const { failure } = await followed(async function* () {
    throw refusal(Code.FailedPrecondition, ErrorReason.PHASE_UNSUITABLE);
  });
  expect(failure).toMatchObject({ rawMessage: "no" });
});
