import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { doAction, type FakeRunner, type Leased, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { type LogStream, streamLogs } from "../harness/log-stream.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ReachableServer, startHostedServer, startServer, stopAll } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";

const KIB = 1024;
const PIECE = 64 * KIB;

let server: ReachableServer;
let runner: FakeRunner;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
});
afterAll(stopAll);

/** An action of two steps that the runner holds. */
async function begun() {
  await startExecution(server, { steps: [task("one"), task("two")] });
  const work = await runner.leaseOne();
  return { work, actionId: work.action.actionId as string };
}

/** Bytes that tell their place in what a step prints. */
const printed = (from: number, length: number) =>
  Buffer.from(Array.from({ length }, (_, index) => ((from + index) * 31) & 0xff));
const chunk = (stepIndex: number, offset: number, length: number) => ({
  stepIndex,
  offset: String(offset),
  data: printed(offset, length).toString("base64"),
});
const report = (work: Leased, ...logs: object[]) => succeeded(runner.report(work, { logs }));

/** What came, one stretch a step and jump; the bytes must be those of their places. */
function stretches({ pieces }: LogStream) {
  const found: { stepIndex: number; attempt: number; from: number; to: number }[] = [];
  for (const { stepIndex, attempt, offset, data } of pieces) {
    expect(data.length).toBeLessThanOrEqual(PIECE);
    expect(Buffer.compare(data, printed(Number(offset), data.length))).toBe(0);
    const last = found.at(-1);
    const to = Number(offset) + data.length;
    if (last && last.stepIndex === stepIndex && last.attempt === attempt && last.to === Number(offset))
      last.to = to;
    else found.push({ stepIndex, attempt, from: Number(offset), to });
  }
  return found;
}

describe("the logs of an action", () => {
  test("are answered as far as they are, step by step, or of one step, from any place on", async () => {
    const { work, actionId } = await begun();
    await report(work, chunk(0, 0, 10), chunk(0, 10, PIECE));
    await report(work, chunk(1, 0, 5));
    const read = async (more: Parameters<typeof streamLogs>[2]) => {
      const stream = streamLogs(server, actionId, more);
      expect(await stream.ended).toBe(undefined);
      return stretches(stream);
    };
    const first = { stepIndex: 0, attempt: 1, from: 0, to: PIECE + 10 };
    const second = { stepIndex: 1, attempt: 1, from: 0, to: 5 };
    expect(await read({})).toEqual([first, second]);
    expect(await read({ stepIndex: 1 })).toEqual([second]);
    expect(await read({ stepIndex: 0, afterOffset: 7n })).toEqual([{ ...first, from: 7 }]);
    expect(await read({ afterOffset: BigInt(PIECE + 10) })).toEqual([second]);
    expect(await read({ stepIndex: 1, afterOffset: 5n })).toEqual([]);
    await doAction(runner, work);
    expect(await read({ follow: true })).toEqual([first, second]);
  });

  test("come as they are printed while they are followed, until the action ends", async () => {
    const { work, actionId } = await begun();
    const stream = streamLogs(server, actionId, { follow: true });
    await stream.opened;
    for (const [count, logs] of [
      [1, chunk(0, 0, 3)],
      [2, chunk(0, 3, 4)],
      [3, chunk(1, 0, 5)],
    ] as const) {
      await report(work, logs);
      await stream.until(count);
      expect(stream.pieces).toHaveLength(count);
    }
    await doAction(runner, work);
    expect(await stream.ended).toBe(undefined);
    expect(stretches(stream).map(({ to }) => to)).toEqual([7, 5]);
  });

  test("are kept of the beginning and the end, past 1 MiB", async () => {
    const { work, actionId } = await begun();
    const total = 1024 * KIB + 1;
    for (let at = 0; at < total; at += 15 * PIECE) {
      const end = Math.min(total, at + 15 * PIECE);
      const pieces = Array.from({ length: Math.ceil((end - at) / PIECE) }, (_, index) => at + index * PIECE);
      await report(work, ...pieces.map((from) => chunk(0, from, Math.min(PIECE, end - from))));
    }
    const stream = streamLogs(server, actionId);
    await stream.ended;
    expect(stretches(stream).map(({ from, to }) => [from, to])).toEqual([
      [0, 512 * KIB],
      [512 * KIB + 1, total],
    ]);
    const cut = stream.pieces.filter(({ leftOutBytes }) => leftOutBytes !== 0n);
    expect(cut.map(({ offset, leftOutBytes }) => [offset, leftOutBytes])).toEqual([
      [BigInt(512 * KIB + 1), 1n],
    ]);
  });

  test("begin again with another attempt", async () => {
    const { work, actionId } = await begun();
    await report(work, chunk(0, 0, 3));
    const stream = streamLogs(server, actionId, { follow: true });
    await stream.until(1);
    await succeeded(runner.finish(work, "OUTCOME_RELEASED"));
    const again = await runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
    await report(again, chunk(0, 0, 4));
    await stream.until(2);
    await doAction(runner, again);
    await stream.ended;
    expect(stretches(stream)).toEqual([
      { stepIndex: 0, attempt: 1, from: 0, to: 3 },
      { stepIndex: 0, attempt: 2, from: 0, to: 4 },
    ]);
    const [cleaning] = await runner.lease();
    await succeeded(runner.finish(cleaning));
  });

  test("are not found under another id, or from another organization", async () => {
    const { work, actionId } = await begun();
    const { token } = await addOrganization(server, "Elsewhere");
    for (const stream of [streamLogs(server, v7()), streamLogs(server, actionId, {}, token)]) {
      expect(await stream.ended).toMatchObject({ code: Code.NotFound });
      expect(stream.pieces).toEqual([]);
    }
    await doAction(runner, work);
  });

  test("end with the server, also while they are followed", async () => {
    const stopping = await startServer();
    const mine = await registerRunner(stopping);
    await startExecution(stopping);
    const work = await mine.leaseOne();
    const stream = streamLogs(stopping, work.action.actionId, { follow: true });
    await stream.opened;
    expect(await stopping.stop()).toBe(0);
    // Otherwise a client would take what it has for all.
    expect(await stream.ended).toMatchObject({ code: Code.Unavailable });
  });
});
