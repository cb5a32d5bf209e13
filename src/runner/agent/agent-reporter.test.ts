import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import { type AgentReport, AgentReporter, type AgentReporterOptions } from "./agent-reporter.ts";

/** Returns a reporter to a service that accepts everything and already has `last` blocks. */
function reportTo(deliver: (progress: AgentReport) => unknown, limits: AgentReporterOptions = {}, last = 0n) {
  let known = last;
  return new AgentReporter(
    async (progress) => {
      await deliver(progress);
      known += BigInt(progress.blocks?.length ?? 0);
      return known;
    },
    last,
    limits,
  );
}
const text = (content: string) => ({ block: { case: "text" as const, value: { content } } });
const contents = ({ blocks = [] }: AgentReport) =>
  blocks.map(({ block }) => (block?.case === "text" ? (block.value.content ?? "") : block?.case));

test("whatever happens is reported in its order, numbered on from what the service has, within its limits", async () => {
  const happening = fc.oneof(
    fc.record({ kind: fc.constant("seen" as const), id: fc.uuid() }),
    fc.record({ kind: fc.constant("block" as const), length: fc.nat(9) }),
    fc.record({ kind: fc.constant("state" as const), state: fc.constantFrom(State.RUNNING, State.WAITING) }),
    fc.record({ kind: fc.constant("pause" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 200 }), async (happenings) => {
      const reports: AgentReport[] = [];
      const report = reportTo(
        (progress) => reports.push(progress),
        { intervalMs: 0, reportCharacters: 20 },
        5n,
      );
      for (const each of happenings) {
        if (each.kind === "seen") report.seen(each.id);
        if (each.kind === "block") report.block(text("x".repeat(each.length)));
        if (each.kind === "state") report.setState(each.state);
        if (each.kind === "pause") await delay(0);
      }
      await report.flush();
      const of = <K extends string>(kind: K) =>
        happenings.filter((each): each is Extract<typeof each, { kind: K }> => each.kind === kind);
      expect(reports.flatMap(({ seenInputIds = [] }) => seenInputIds)).toEqual(
        of("seen").map(({ id }) => id),
      );
      const blocks = reports.flatMap(contents);
      expect(blocks.map((content) => content?.length)).toEqual(of("block").map(({ length }) => length));
      const numbers = reports.flatMap(({ blocks = [] }) => blocks.map(({ sequence }) => sequence));
      expect(numbers).toEqual(blocks.map((_, at) => BigInt(at) + 6n));
      const states = reports.map(({ state }) => state).filter((state) => state !== State.UNSPECIFIED);
      expect(states).toEqual(of("state").map(({ state }) => state));
      for (const progress of reports) {
        expect(progress.seenInputIds?.length).toBeLessThanOrEqual(64);
        expect(progress.blocks?.length).toBeLessThanOrEqual(63);
        if ((progress.blocks?.length ?? 0) > 1)
          expect(contents(progress).join("").length).toBeLessThanOrEqual(20);
      }
    }),
    { ...replay, numRuns: 50 },
  );
});

test.each([
  [63, 1],
  [64, 2],
  [65, 2],
])("%i blocks are sent in %i reports", async (count, wanted) => {
  const reports: AgentReport[] = [];
  const report = reportTo((progress) => reports.push(progress));
  for (let at = 0; at < count; at++) report.block(text("x"));
  await report.flush();
  expect(reports).toHaveLength(wanted);
});

test("nothing that comes after a wait goes into the report of it", async () => {
  const reports: AgentReport[] = [];
  const report = reportTo((progress) => reports.push(progress));
  report.block(text("before"));
  report.setState(State.WAITING, [{ id: "t", interest: { case: "userMessage", value: true } }]);
  report.block(text("after"));
  report.setState(State.RUNNING);
  await report.flush();
  expect(reports).toMatchObject([
    { state: State.WAITING, interests: [{ id: "t" }] },
    { state: State.RUNNING },
  ]);
  expect(reports.map(contents)).toEqual([["before"], ["after"]]);
});

test("of what an agent says of itself the newest is reported", async () => {
  const reports: AgentReport[] = [];
  const report = reportTo((progress) => reports.push(progress));
  report.update({ currentActivity: "one", usage: { iterations: 1n } });
  report.update({ currentActivity: "two" });
  await report.flush();
  expect(reports).toMatchObject([{ currentActivity: "two", usage: { iterations: 1n } }]);
});

test("a caller that says more than is taken waits, and goes on when there is room", async () => {
  const gate = Promise.withResolvers<void>();
  let taken = 0;
  const report = reportTo(
    async () => {
      await gate.promise;
      taken++;
    },
    { reportCharacters: 10 },
  );
  let written = 0;
  const writing = (async () => {
    for (; written < 20; written++) {
      report.block(text("0123456789"));
      await report.waitForRoom();
    }
  })();
  await delay(150);
  expect(written).toBeLessThan(8);
  gate.resolve();
  await writing;
  await report.flush();
  expect(taken).toBe(20);
});

test("after a report that fails nothing is reported, and a caller that waits learns why", async () => {
  let calls = 0;
  const report = reportTo(() => {
    calls++;
    throw new Error("gone");
  });
  report.block(text("x"));
  await expect(report.flush()).rejects.toThrow("gone");
  expect(report.failed.aborted).toBe(true);
  for (let at = 0; at < 1_000; at++) report.block(text("y"));
  await expect(report.waitForRoom()).rejects.toThrow("gone");
  await expect(report.flush()).rejects.toThrow("gone");
  expect(calls).toBe(1);
});
