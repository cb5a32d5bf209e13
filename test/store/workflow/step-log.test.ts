import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { builderOf } from "../../../src/store/query-builder.ts";
import { type Handle, SYSTEM } from "../../../src/store/store.ts";
import { appendLog, findLogChunks, type LogOwner } from "../../../src/store/workflow/step-log.ts";
import { listenToOwnCommits } from "../../harness/own-commits.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";

const MIB = 1024 * 1024;
const HALF = MIB / 2;

const OWNER: LogOwner = { actionId: "action" as Handle<"workflow_action">, attempt: 1, stepIndex: 0 };

let made: TestStore;
beforeEach(async () => {
  made = openTestStore();
  const organization = await made.createOrganization("Logs");
  // An action is all that a log needs; how one comes about is not asked here.
  await made.store.write(SYSTEM, "test", async ({ db }) => {
    const { organizationId: organization_id } = organization;
    const subject = { creator_id: "", executor_id: "", executor_principal: 1, body: "{}", search_text: "" };
    const counts = { pending_count: 0, running_count: 0, failed_count: 0, done_count: 0, stopped_count: 0 };
    const times = { started_at: 0, finished_at: null };
    await builderOf(db)
      .insertInto("workflow")
      .values({
        id: "workflow",
        organization_id,
        disabled: 0,
        deleting: 0,
        sort_name: "",
        completed_at: null,
        ...subject,
      })
      .execute();
    await builderOf(db)
      .insertInto("workflow_execution")
      .values({
        id: "execution",
        organization_id,
        workflow_id: "workflow",
        trigger_index: null,
        trigger_kind: "manual",
        phase: 2,
        desired_phase: 7,
        expanded: 1,
        failed: 0,
        variables: "{}",
        retried_execution_id: null,
        action_failures: "[]",
        action_warnings: "[]",
        session: "",
        progress: "{}",
        ...subject,
        ...counts,
        ...times,
      })
      .execute();
    await builderOf(db)
      .insertInto("workflow_action")
      .values({
        id: OWNER.actionId,
        organization_id,
        workflow_id: "workflow",
        execution_id: "execution",
        is_report: 0,
        phase: 2,
        desired_phase: 7,
        queued: 1,
        failed: 0,
        environment_id: null,
        started_at: 0,
        stops_at: null,
        outputs: null,
        session: "",
        finished_at: null,
        attempt: 1,
        progress: "{}",
        body: "{}",
      })
      .execute();
  });
});
afterEach(() => made.close());

/** Bytes of which each tells its place, as far as a byte can. */
const printed = (from: number, length: number) =>
  Uint8Array.from({ length }, (_, index) => ((from + index) * 7 + ((from + index) >> 8)) & 0xff);

const append = (offset: number, data: Uint8Array, owner = OWNER) =>
  made.store.write(SYSTEM, "test", (tx) => appendLog(tx, owner, { offset, data }));

/** Prints up to `total` bytes, in pieces of a length. */
async function print(total: number, pieceLength: number, owner = OWNER): Promise<void> {
  for (let at = 0; at < total; at += pieceLength) {
    await append(at, printed(at, Math.min(pieceLength, total - at)), owner);
  }
}

/** What is kept, as stretches that follow each other without a gap. */
async function stretches(owner = OWNER, after = { stepIndex: owner.stepIndex, offset: 0 }) {
  const found: { from: number; to: number }[] = [];
  const pieces = await findLogChunks(made.store.reader, owner, after, 49, 100_000);
  for (const { offset, data } of pieces) {
    expect(Buffer.compare(data, printed(offset, data.length))).toBe(0);
    const last = found.at(-1);
    if (last?.to === offset) last.to += data.length;
    else found.push({ from: offset, to: offset + data.length });
  }
  return found;
}

describe("the log of a step", () => {
  test("wakes who follows its action with each piece that is new, and nobody else", async () => {
    const [wake, other] = [jest.fn(), jest.fn()];
    const { onChange } = listenToOwnCommits(made.store);
    onChange(OWNER.actionId, wake);
    onChange("another", other);
    await append(0, printed(0, 10));
    await append(0, printed(0, 10));
    expect(wake).toHaveBeenCalledTimes(1);
    await append(5, printed(5, 10));
    expect(wake).toHaveBeenCalledTimes(2);
    expect(other).not.toHaveBeenCalled();
  });

  test.each([
    [MIB - 1, [{ from: 0, to: MIB - 1 }]],
    [MIB, [{ from: 0, to: MIB }]],
    [
      MIB + 1,
      [
        { from: 0, to: HALF },
        { from: HALF + 1, to: MIB + 1 },
      ],
    ],
    [
      5 * MIB + 7,
      [
        { from: 0, to: HALF },
        { from: 5 * MIB + 7 - HALF, to: 5 * MIB + 7 },
      ],
    ],
  ])("of %i bytes keeps the first and the last 512 KiB", async (total, kept) => {
    for (const [stepIndex, pieceLength] of [65_536, 10_007].entries()) {
      const owner = { ...OWNER, stepIndex };
      await print(total, pieceLength, owner);
      expect(await stretches(owner, { stepIndex, offset: 0 })).toEqual(kept);
    }
  });

  test("is the same however often its pieces are sent", async () => {
    await append(0, printed(0, 100));
    expect(await append(0, printed(0, 100))).toBe(true);
    expect(await append(40, printed(40, 100))).toBe(true);
    expect(await append(140, new Uint8Array())).toBe(true);
    expect(await stretches()).toEqual([{ from: 0, to: 140 }]);
  });

  test("takes no piece that leaves a gap", async () => {
    expect(await append(1, printed(1, 1))).toBe(false);
    await append(0, printed(0, 10));
    expect(await append(11, printed(11, 1))).toBe(false);
    expect(await append(10, printed(10, 1))).toBe(true);
    expect(await stretches()).toEqual([{ from: 0, to: 11 }]);
  });

  test("goes on past its middle where it ended", async () => {
    await print(2 * MIB, 65_536);
    expect(await append(2 * MIB + 1, printed(0, 1))).toBe(false);
    expect(await append(2 * MIB - 10, printed(2 * MIB - 10, 20))).toBe(true);
    expect((await stretches()).at(-1)).toEqual({ from: 2 * MIB + 10 - HALF, to: 2 * MIB + 10 });
  });

  test("is read on from any place, within pieces and between them", async () => {
    await print(1_000, 100);
    for (const offset of [0, 1, 99, 100, 101, 999]) {
      expect(await stretches(OWNER, { stepIndex: 0, offset })).toEqual([{ from: offset, to: 1_000 }]);
    }
    expect(await stretches(OWNER, { stepIndex: 0, offset: 1_000 })).toEqual([]);
  });

  test("is followed by those of the later steps of its attempt, and of no other", async () => {
    await print(10, 10);
    await print(20, 20, { ...OWNER, stepIndex: 2 });
    await print(30, 30, { ...OWNER, attempt: 2, stepIndex: 1 });
    const read = (offset: number, lastStep: number) =>
      findLogChunks(made.store.reader, OWNER, { stepIndex: 0, offset }, lastStep, 10);
    expect((await read(0, 49)).map(({ stepIndex }) => stepIndex)).toEqual([0]);
    expect((await read(10, 49)).map(({ stepIndex, data }) => [stepIndex, data.length])).toEqual([[2, 20]]);
    expect(await read(10, 1)).toEqual([]);
  });

  test("leaves no audit row", async () => {
    const count = () =>
      builderOf(made.store.reader)
        .selectFrom("audit_log")
        .select((eb) => eb.fn.countAll<number>().as("n"))
        .executeTakeFirstOrThrow();
    const before = await count();
    await print(3 * MIB, 65_536);
    expect(await count()).toEqual(before);
  });
});
