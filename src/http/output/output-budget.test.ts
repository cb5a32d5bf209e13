import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { PAGE_BYTES, READS_PER_CALLER } from "./caller-reads.ts";
import type { ResponseOutput, Turn } from "./output-account.ts";
import { OutputBudget, type SlowReader } from "./output-budget.ts";

const LIMITS = { connectionBytes: 100, callerBytes: 200, totalBytes: 400, stallMs: 5_000 };
const LIST = "service.v1.ProjectService/ListProjects";

/** A connection as the responses on it see it. */
interface TestConnection {
  writtenBytes: number;
  turn: Turn;
}

const connected = (turn: Turn = "shared"): TestConnection => ({ writtenBytes: 0, turn });

function setUp() {
  const reported: SlowReader[] = [];
  const cuts: string[] = [];
  const budget = new OutputBudget(LIMITS, (reader) => reported.push(reader));
  /** Opens a response on a connection, for the caller if one is given. */
  const open = (connection: TestConnection, name: string, caller?: string): ResponseOutput => {
    const output = budget.open(connection, {
      writtenBytes: () => connection.writtenBytes,
      turn: () => connection.turn,
      cutResponse: () => void cuts.push(`answer ${name}`),
      cutConnection: () => void cuts.push(`connection ${name}`),
    });
    if (caller !== undefined) output.charge(caller);
    return output;
  };
  return { budget, reported, cuts, open };
}

/** Event loop turns: more than the waiting calls of any test. */
const TURNS = 20;

/** Returns whether a call has been admitted. */
async function hasRoom(room: Promise<void> | undefined): Promise<boolean> {
  if (!room) return true;
  let isFree = false;
  void room.then(() => {
    isFree = true;
  });
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  return isFree;
}

describe("a call waits", () => {
  test.each([
    [99, true],
    [100, false],
    [101, false],
  ])("when its connection holds %d of 100 bytes: %s", async (held, isFree) => {
    const { open } = setUp();
    const connection = connected();
    open(connection, "first").hold(held);
    expect(await hasRoom(open(connection, "second", "a").enter(undefined))).toBe(isFree);
  });

  test("when its caller holds too much on all connections, and goes on when that is taken", async () => {
    const { open } = setUp();
    const [one, other] = [open(connected(), "one", "a"), open(connected(), "other", "a")];
    for (const output of [one, other]) {
      expect(output.enter(undefined)).toBeUndefined();
      output.hold(100);
    }
    const room = open(connected(), "third", "a").enter(undefined);
    expect(await hasRoom(room)).toBe(false);
    expect(open(connected(), "of another", "b").enter(undefined)).toBeUndefined();
    one.take(1);
    expect(await hasRoom(room)).toBe(true);
  });

  test("when its connection is full of another caller's answers, until some are taken", async () => {
    const { open } = setUp();
    const connection = connected();
    const first = open(connection, "first", "a");
    first.hold(100);
    const room = open(connection, "second", "b").enter(undefined);
    expect(await hasRoom(room)).toBe(false);
    first.take(1);
    expect(await hasRoom(room)).toBe(true);
  });

  test("until all that wait have room, in turns of their own, whatever their kind", async () => {
    const { open } = setUp();
    const connection = connected();
    const first = open(connection, "first", "a");
    first.hold(300_000);
    const rooms = [undefined, LIST, undefined, LIST, LIST].map((read) =>
      open(connection, "", "a").enter(read),
    );
    expect(await Promise.all(rooms.map(hasRoom))).toEqual(rooms.map(() => false));
    first.end();
    expect(await Promise.all(rooms.map(hasRoom))).toEqual(rooms.map(() => true));
  });

  test("when everything is full, no matter who calls, until an answer ends", async () => {
    const { open } = setUp();
    const outputs = ["a", "b", "c", "d"].map((caller) => {
      const output = open(connected(), caller, caller);
      output.hold(100);
      return output;
    });
    const room = open(connected(), "e", "e").enter(undefined);
    expect(await hasRoom(room)).toBe(false);
    outputs[0]?.end();
    expect(await hasRoom(room)).toBe(true);
  });

  test("when so many of its kind produce their answers, but not when they are produced", async () => {
    const { open } = setUp();
    const producing = Array.from({ length: READS_PER_CALLER }, () => open(connected(), "producing", "a"));
    for (const output of producing) expect(output.enter(LIST)).toBeUndefined();
    expect(open(connected(), "another operation", "a").enter("Get")).toBeUndefined();
    expect(open(connected(), "another caller", "b").enter(LIST)).toBeUndefined();
    const next = open(connected(), "next", "a").enter(LIST);
    expect(await hasRoom(next)).toBe(false);
    producing[0]?.hold(1);
    expect(await hasRoom(next)).toBe(true);
  });

  test("for one of the full pages before it holds long texts, and others of short texts do not", async () => {
    const { open } = setUp();
    const short = open(connected(), "short", "a");
    expect(short.enter(LIST, 1_000)).toBeUndefined();
    const pages = Array.from({ length: READS_PER_CALLER - 1 }, () => open(connected(), "page", "a"));
    for (const output of pages) expect(output.enter(LIST)).toBeUndefined();
    const enlarged = short.enlarge();
    const others = Array.from({ length: 10 }, () => open(connected(), "other", "a").enter(LIST, 1_000));
    expect(await Promise.all(others.map(hasRoom))).toEqual(others.map(() => true));
    expect(await hasRoom(enlarged)).toBe(false);
    pages[0]?.hold(1);
    expect(await hasRoom(enlarged)).toBe(true);
    expect(short.enlarge()).toBeUndefined();
    const next = open(connected(), "next", "a").enter(LIST);
    expect(await hasRoom(next)).toBe(false);
    short.end();
    expect(await hasRoom(next)).toBe(true);
  });

  test("when reads of short texts hold a full page together, even if each is small", async () => {
    const { open } = setUp();
    const half = PAGE_BYTES / 2;
    const [first, second] = [open(connected(), "first", "a"), open(connected(), "second", "a")];
    for (const output of [first, second]) expect(output.enter(LIST, half)).toBeUndefined();
    const next = open(connected(), "next", "a").enter(LIST, 1);
    expect(await hasRoom(next)).toBe(false);
    first.hold(1);
    expect(await hasRoom(next)).toBe(true);
  });

  test("for long texts no longer than its client does", async () => {
    const { open } = setUp();
    const short = open(connected(), "short", "a");
    short.enter(LIST, 1_000);
    for (let page = 1; page < READS_PER_CALLER; page++) open(connected(), "page", "a").enter(LIST);
    const room = short.enlarge();
    expect(await hasRoom(room)).toBe(false);
    short.end();
    expect(await hasRoom(room)).toBe(true);
    expect(open(connected(), "last", "a").enter(LIST)).toBeUndefined();
  });

  test("behind those of its caller that came before it", async () => {
    const { open } = setUp();
    const producing = Array.from({ length: READS_PER_CALLER }, () => open(connected(), "producing", "a"));
    for (const output of producing) output.enter(LIST);
    const earlier = open(connected(), "earlier", "a").enter(LIST);
    producing[0]?.end();
    const later = open(connected(), "later", "a").enter(LIST);
    expect([await hasRoom(earlier), await hasRoom(later)]).toEqual([true, false]);
  });

  test("no longer than its client does, and leaves its place to others", async () => {
    const { open } = setUp();
    const connection = connected();
    const first = open(connection, "first");
    first.hold(100);
    const waiting = open(connection, "second", "a");
    const room = waiting.enter(undefined);
    waiting.end();
    expect([await hasRoom(room), waiting.isOpen]).toEqual([true, false]);
    first.end();
    expect(open(connection, "third", "a").enter(undefined)).toBeUndefined();
  });
});

describe("a reader is cut", () => {
  test.each([
    [4_999, []],
    [5_000, ["answer slow"]],
  ])("when it has taken nothing for %d of 5,000 ms: %j", (ms, expected) => {
    const { budget, cuts, reported, open } = setUp();
    open(connected("own"), "slow").hold(10);
    budget.pass(ms);
    expect(cuts).toEqual(expected);
    expect(reported).toEqual(
      expected.map(() => ({ reason: "stalled", callerKey: undefined, heldBytes: 10 })),
    );
    expect(budget.heldBytes).toBe(expected.length === 0 ? 10 : 0);
  });

  test("on a busy connection only when the system takes nothing of it either", () => {
    const { budget, cuts, open } = setUp();
    const connection = connected();
    open(connection, "first").hold(50);
    open(connection, "second").hold(50);
    budget.pass(0);
    for (let pass = 0; pass < 3; pass++) {
      connection.writtenBytes += 1;
      budget.pass(4_999);
    }
    expect(cuts).toEqual([]);
    budget.pass(4_999);
    expect(cuts).toEqual([]);
    budget.pass(1);
    expect(cuts).toEqual(["answer first", "answer second"]);
  });

  test("on an idle connection by what it takes of that answer, however much others take", () => {
    const { budget, cuts, open } = setUp();
    const connection = connected("own");
    const [read, unread] = [open(connection, "read"), open(connection, "unread")];
    read.hold(50);
    unread.hold(50);
    budget.pass(4_000);
    read.take(1);
    connection.writtenBytes += 1;
    budget.pass(1_000);
    expect(cuts).toEqual(["answer unread"]);
  });

  test("never while its answer is behind another one, which sends nothing", () => {
    const { budget, cuts, open } = setUp();
    const connection = connected("later");
    open(connection, "queued").hold(50);
    for (let pass = 0; pass < 3; pass++) budget.pass(5_000);
    expect(cuts).toEqual([]);
    connection.turn = "shared";
    // The first check records what was written before.
    budget.pass(0);
    budget.pass(5_000);
    expect(cuts).toEqual(["answer queued"]);
  });

  test("when everything is full: the slowest of those that are known", () => {
    const { budget, cuts, reported, open } = setUp();
    const slow = open(connected(), "slow", "a");
    slow.hold(150);
    const fast = connected();
    open(fast, "fast").hold(150);
    budget.pass(0);
    fast.writtenBytes += 50;
    budget.pass(1_000);
    open(connected(), "new").hold(99);
    expect(cuts).toEqual([]);
    open(connected(), "newest").hold(1);
    expect(cuts).toEqual(["connection slow"]);
    expect(reported).toEqual([{ reason: "total", callerKey: "a", heldBytes: 150 }]);
    expect([budget.heldBytes, slow.isOpen]).toEqual([250, false]);
  });

  test("when calls of the same account have waited for it for ten seconds, however it trickles", () => {
    const { budget, cuts, open } = setUp();
    const [slow, slower] = [connected(), connected()];
    open(slow, "slow", "a").hold(150);
    open(slower, "slower", "a").hold(150);
    open(connected(), "waiting", "a").enter(undefined);
    for (let second = 0; second < 10; second++) {
      expect(cuts).toEqual([]);
      slow.writtenBytes += 2;
      slower.writtenBytes += 1;
      budget.pass(1_000);
    }
    expect(cuts).toEqual(["connection slower"]);
  });
});
