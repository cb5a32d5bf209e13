import { describe, expect, test } from "@jest/globals";
import type { Output } from "./output-account.ts";
import { createOutputBudget, READS_PER_CALLER, type SlowReader } from "./output-budget.ts";

const LIMITS = { connectionBytes: 100, callerBytes: 200, totalBytes: 400, stallMs: 5_000 };
const LIST = "service.v1.ProjectService/ListProjects";

function setUp(isMultiplexed = true) {
  const told: SlowReader[] = [];
  const cuts: string[] = [];
  const budget = createOutputBudget(LIMITS, (reader) => told.push(reader));
  /** An answer of a connection that is named, which must have room at once. */
  const open = (connection: object, name: string): Output =>
    budget.open(connection, {
      isMultiplexed,
      answer: () => void cuts.push(`answer ${name}`),
      connection: () => void cuts.push(`connection ${name}`),
    });
  return { budget, told, cuts, open };
}

/** Whether a call has gone on. */
async function hasRoom(room: Promise<void> | undefined): Promise<boolean> {
  if (!room) return true;
  const never = new Promise<boolean>((resolve) => setImmediate(() => setImmediate(() => resolve(false))));
  return Promise.race([room.then(() => true), never]);
}

describe("a call waits", () => {
  test.each([
    [99, true],
    [100, false],
    [101, false],
  ])("when its connection holds %d of 100 bytes: %s", async (held, isFree) => {
    const { open } = setUp();
    const connection = {};
    open(connection, "first").hold(held);
    expect(await hasRoom(open(connection, "second").enter("a", undefined))).toBe(isFree);
  });

  test("when its caller holds too much on all connections, and goes on when that is taken", async () => {
    const { open } = setUp();
    const [one, other] = [open({}, "one"), open({}, "other")];
    for (const output of [one, other]) expect(await hasRoom(output.enter("a", undefined))).toBe(true);
    one.hold(100);
    other.hold(100);
    const room = open({}, "third").enter("a", undefined);
    expect(await hasRoom(room)).toBe(false);
    expect(await hasRoom(open({}, "of another").enter("b", undefined))).toBe(true);
    one.take(1);
    expect(await hasRoom(room)).toBe(true);
  });

  test("when everything is full, whoever calls, until an answer ends", async () => {
    const { open } = setUp();
    const outputs = ["a", "b", "c", "d"].map((caller) => {
      const output = open({}, caller);
      output.enter(caller, undefined);
      output.hold(100);
      return output;
    });
    const room = open({}, "e").enter("e", undefined);
    expect(await hasRoom(room)).toBe(false);
    outputs[0]?.end();
    expect(await hasRoom(room)).toBe(true);
  });

  test("when so many of its kind produce their answers, but not when they are produced", async () => {
    const { open } = setUp();
    const producing = Array.from({ length: READS_PER_CALLER }, () => open({}, "producing"));
    for (const output of producing) expect(await hasRoom(output.enter("a", LIST))).toBe(true);
    const next = open({}, "next").enter("a", LIST);
    expect(await hasRoom(next)).toBe(false);
    expect(await hasRoom(open({}, "another operation").enter("a", "Get"))).toBe(true);
    expect(await hasRoom(open({}, "another caller").enter("b", LIST))).toBe(true);
    producing[0]?.hold(1);
    expect(await hasRoom(next)).toBe(true);
  });

  test("no longer than its client does", async () => {
    const { open } = setUp();
    const connection = {};
    open(connection, "first").hold(100);
    const waiting = open(connection, "second");
    const room = waiting.enter("a", undefined);
    waiting.end();
    expect([await hasRoom(room), waiting.isOpen]).toEqual([true, false]);
  });
});

describe("a reader is cut", () => {
  test.each([
    [4_999, []],
    [5_000, ["answer slow"]],
  ])("when it has taken nothing for %d of 5,000 ms: %j", (ms, expected) => {
    const { budget, cuts, told, open } = setUp();
    open({}, "slow").hold(10);
    budget.pass(ms);
    expect(cuts).toEqual(expected);
    expect(told).toEqual(expected.map(() => ({ reason: "stalled", callerKey: undefined, heldBytes: 10 })));
    expect(budget.heldBytes).toBe(expected.length === 0 ? 10 : 0);
  });

  test("on HTTP/2 by what it takes of that answer, on HTTP/1 by what it takes of any", () => {
    for (const isMultiplexed of [true, false]) {
      const { budget, cuts, open } = setUp(isMultiplexed);
      const connection = {};
      const [first, second] = [open(connection, "first"), open(connection, "second")];
      first.hold(50);
      second.hold(50);
      budget.pass(4_000);
      first.take(1);
      budget.pass(1_000);
      expect(cuts).toEqual(isMultiplexed ? ["answer second"] : []);
    }
  });

  test("when everything is full: the slowest of those that are known", () => {
    const { budget, cuts, told, open } = setUp();
    const slow = open({}, "slow");
    slow.enter("a", undefined);
    slow.hold(150);
    const fast = open({}, "fast");
    fast.hold(150);
    budget.pass(1_000);
    fast.take(50);
    open({}, "new").hold(149);
    expect(cuts).toEqual([]);
    open({}, "newest").hold(1);
    expect(cuts).toEqual(["connection slow"]);
    expect(told).toEqual([{ reason: "total", callerKey: "a", heldBytes: 150 }]);
    expect([budget.heldBytes, slow.isOpen]).toEqual([250, false]);
  });

  test("when calls of the same account have waited for it for ten seconds, however it trickles", () => {
    const { budget, cuts, open } = setUp();
    const [slow, slower] = [open({}, "slow"), open({}, "slower")];
    for (const output of [slow, slower]) {
      output.enter("a", undefined);
      output.hold(150);
    }
    open({}, "waiting").enter("a", undefined);
    for (let second = 0; second < 10; second++) {
      expect(cuts).toEqual([]);
      slow.take(2);
      slower.take(1);
      budget.pass(1_000);
    }
    expect(cuts).toEqual(["connection slower"]);
  });
});

test("a connection that closes leaves nothing behind", () => {
  const { budget, open } = setUp();
  const connection = {};
  for (const name of ["one", "two"]) open(connection, name).hold(40);
  open({}, "other").hold(5);
  budget.close(connection);
  expect(budget.heldBytes).toBe(5);
});
