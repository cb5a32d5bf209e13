import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { AgentControlInputSchema, AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { findLease, resetAttempts } from "../../../src/store/runner/work-lease.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { replay } from "../../harness/seed.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { addAgent, inputsOf, type Runs, runsOn } from "./agents.ts";

const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3);

/** An organization with a runner that holds a run. */
interface Home {
  readonly caller: Caller;
  readonly runner: RegisteredRunner;
  readonly runs: Runs;
  readonly id: string;
  given: Work;
}

let made: TestStore;
let ours: Home;
let theirs: Home;
beforeEach(async () => {
  made = openTestStore();
  await addAgent(made, null, { isDefault: true });
  ours = await home("ours");
  theirs = await home("theirs");
});
afterEach(() => made.close());

async function home(name: string): Promise<Home> {
  const caller = await made.createOrganization(name);
  const runner = await registeredRunner(made, caller);
  const runs = runsOn(made, caller, runner);
  return { caller, runner, runs, ...(await runs.running()) };
}

const say = ({ runs, id }: Home, inputId: string, agentExecutionId = id) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: {
      case: "userInput",
      value: { id: inputId, inputs: [{ input: { case: "text", value: { content: inputId } } }] },
    },
  });
const order = (
  { runs, id }: Home,
  control: NonNullable<MessageInitShape<typeof AgentControlInputSchema>["control"]>,
) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId: id,
    input: { case: "controlInput", value: create(AgentControlInputSchema, { control }) },
  });
const list = async ({ runs, id }: Home, includePast = false) => {
  const { inputs } = await runs.agents.listAgentInputs({
    agentExecutionId: id,
    includePast,
    pagination: { pageSize: 100 },
  });
  return inputs;
};
const queueOf = async (of: Home) => (await list(of)).map(({ id }) => id);
const report = ({ runs, given }: Home, progress: object) =>
  runs.work.reportAgent({ ...runs.named(given), ...progress });
const refusedWith = (reason: ErrorReason) => expect.objectContaining({ reason });

describe("the inputs of a run", () => {
  test("are its own, whatever ids those of another organization's run have", async () => {
    for (const id of ["a", "b"]) {
      await say(ours, id);
      await say(theirs, id);
    }
    await order(ours, {
      case: "moveQueuedMessage",
      value: { userInputId: "b", beforeUserInputId: "a" },
    });
    await order(ours, { case: "deleteQueuedMessage", value: { userInputId: "a" } });
    expect([await queueOf(ours), await queueOf(theirs)]).toEqual([["b"], ["a", "b"]]);
    const stream = inputsOf(made, ours.runner, ours.given);
    expect((await stream.next())?.input?.id).toBe("b");
    await stream.leave();
    await report(ours, { seenInputIds: ["b"] });
    expect((await list(theirs, true)).map(({ receipt }) => receipt)).toEqual([
      Receipt.QUEUED,
      Receipt.QUEUED,
    ]);
    // Theirs was never delivered, so no report of it is taken.
    await expect(report(theirs, { seenInputIds: ["b"] })).rejects.toEqual(
      refusedWith(ErrorReason.VALUE_UNUSABLE),
    );
  });

  test("of another organization are nothing that a caller, or a runner, could name", async () => {
    await say(theirs, "a");
    await expect(say(ours, "b", theirs.id)).rejects.toEqual(refusedWith(ErrorReason.NOT_FOUND));
    await expect(ours.runs.agents.listAgentInputs({ agentExecutionId: theirs.id })).rejects.toEqual(
      refusedWith(ErrorReason.NOT_FOUND),
    );
    const stream = inputsOf(made, ours.runner, theirs.given);
    await expect(stream.next()).rejects.toEqual(refusedWith(ErrorReason.LEASE_LOST));
  });

  test("keep images apart from what is listed, until the turn is over", async () => {
    const image = { case: "image", value: { data: PNG, mimeType: "image/png" } } as const;
    const value = { id: "seen", inputs: [{ input: image }, { input: image }] };
    const send = (of: Home, id: string) =>
      of.runs.agents.sendToAgentExecution({
        agentExecutionId: of.id,
        input: { case: "userInput", value: { ...value, id } },
      });
    const images = async () =>
      (
        await builderOf(made.store.reader)
          .selectFrom("agent_input_image")
          .select(["input_id", "data"])
          .execute()
      )
        .map(({ input_id, data }) => [input_id, data.length])
        .toSorted();
    await send(ours, "image");
    await send(ours, "deleted");
    expect(await images()).toEqual(
      ["image", "image", "deleted", "deleted"].map((id) => [id, PNG.length]).toSorted(),
    );
    const { body } = await builderOf(made.store.reader)
      .selectFrom("agent_input")
      .select("body")
      .where("input_id", "=", "image")
      .executeTakeFirstOrThrow();
    expect(body).not.toContain(Buffer.from(PNG).toString("base64"));
    await order(ours, { case: "deleteQueuedMessage", value: { userInputId: "deleted" } });
    const stream = inputsOf(made, ours.runner, ours.given);
    const message = (await stream.next())?.input?.input;
    await stream.leave();
    const parts = message?.case === "userInput" ? message.value.inputs : [];
    expect(parts.map(({ input }) => input.case === "image" && [...input.value.data])).toEqual([
      [...PNG],
      [...PNG],
    ]);
    await report(ours, { seenInputIds: ["image"], state: State.RUNNING });
    // A turn that is lost can be asked for again.
    expect(await images()).toHaveLength(2);
    await report(ours, { state: State.WAITING });
    expect(await images()).toEqual([]);
  });

  test("go with the run", async () => {
    await say(ours, "a");
    await say(theirs, "a");
    await ours.runs.finish(ours.given);
    await ours.runs.agents.deleteAgentExecution({ agentExecutionId: ours.id });
    const rows = await builderOf(made.store.reader)
      .selectFrom("agent_input")
      .select("execution_id")
      .execute();
    expect(rows).toEqual([{ execution_id: theirs.id }]);
  });
});

describe("whatever is done to a queue and its runner", () => {
  type Step = {
    do: "say" | "steer" | "remove" | "move" | "order" | "take" | "see" | "wait" | "lose";
    at: number;
  };
  const kinds = [
    "say",
    "say",
    "say",
    "steer",
    "remove",
    "move",
    "order",
    "take",
    "take",
    "see",
    "wait",
    "lose",
  ] as const;
  const steps = fc.array(fc.record({ do: fc.constantFrom(...kinds), at: fc.nat(9) }), {
    minLength: 10,
    maxLength: 40,
  });

  test("every input reaches the agent in the order of the queue, once, or was deleted", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        // In the environment of a run that goes on, which so stays up.
        const environmentId =
          (await ours.runs.get(ours.id))?.status?.usedEnvironments[0]?.environmentId ?? "";
        const codeContext = { context: { case: "environmentId", value: environmentId } } as const;
        const id = await ours.runs.start({ codeContext });
        const run = { ...ours, id, given: await ours.runs.takeOn() };
        await play(run, plan);
        await run.runs.finish(run.given);
      }),
      { numRuns: 20, endOnFailure: true, ...replay },
    );
  });

  /** Does the steps, and holds each delivery against the queue as it was before. */
  async function play(run: Home, plan: readonly Step[]): Promise<void> {
    let stream = inputsOf(made, run.runner, run.given);
    let said = 0;
    /** Delivered and not acknowledged, in order; each new stream begins with them. */
    let unseen: string[] = [];
    let again: string[] = [];
    const seen: string[] = [];
    const deleted: string[] = [];
    let isIdle = true;
    for (const step of plan) {
      const inputs = await list(run);
      const messages = inputs.filter(({ input }) => input.case === "userInput").map(({ id }) => id);
      const named = messages[step.at % Math.max(1, messages.length)];
      if (step.do === "say") await say(run, `message ${said++}`);
      else if (step.do === "order") await order(run, { case: "compact", value: {} });
      else if (step.do === "steer" && named) {
        await order(run, { case: "steerQueuedMessage", value: { userInputId: named } });
      } else if (step.do === "remove" && named) {
        await order(run, { case: "deleteQueuedMessage", value: { userInputId: named } });
        deleted.push(named);
      } else if (step.do === "move" && named) {
        const beforeUserInputId = messages[(step.at + 3) % messages.length] ?? "";
        await order(run, {
          case: "moveQueuedMessage",
          value: { userInputId: named, beforeUserInputId },
        });
      } else if (step.do === "take") {
        const [first] = inputs;
        const isUrgent = first && (await isSteered(run, first.id));
        const due =
          again[0] ?? (first && (isUrgent || (isIdle && unseen.length === 0)) ? first.id : undefined);
        if (due === undefined) continue;
        expect((await stream.next())?.input?.id).toBe(due);
        if (again.length > 0) again = again.slice(1);
        else unseen.push(due);
      } else if (step.do === "see" && unseen.length > again.length) {
        const got = unseen.slice(0, unseen.length - again.length);
        await report(run, { seenInputIds: got, state: State.RUNNING });
        seen.push(...got);
        unseen = unseen.slice(got.length);
        isIdle = false;
      } else if (step.do === "wait") {
        await report(run, { state: State.WAITING });
        isIdle = true;
      } else if (step.do === "lose") {
        await stream.leave();
        await run.runs.finish(run.given, Outcome.RELEASED);
        run.given = await run.runs.takeOn();
        stream = inputsOf(made, run.runner, run.given);
        again = [...unseen];
        isIdle = true;
        await report(run, { state: State.WAITING });
        // So that three losses in a row do not end the run.
        await made.store.write(SYSTEM, "test", async (tx) => {
          const lease = await findLease(tx.db, run.caller, run.given.leaseId);
          if (lease) await resetAttempts(tx, lease.id);
        });
      }
    }
    await stream.leave();
    const receipts = new Map((await list(run, true)).map(({ id, receipt }) => [id, receipt]));
    const withReceipt = (wanted: Receipt) =>
      [...receipts].flatMap(([id, receipt]) => (receipt === wanted ? [id] : []));
    expect(withReceipt(Receipt.SEEN).toSorted()).toEqual(seen.toSorted());
    expect(new Set(seen).size).toBe(seen.length);
    expect(withReceipt(Receipt.DELIVERED).toSorted()).toEqual(unseen.toSorted());
    expect(withReceipt(Receipt.DELETED).toSorted()).toEqual(deleted.toSorted());
  }

  async function isSteered({ id }: Home, inputId: string): Promise<boolean> {
    const row = await builderOf(made.store.reader)
      .selectFrom("agent_input")
      .select("steer")
      .where("execution_id", "=", id)
      .where("input_id", "=", inputId)
      .executeTakeFirstOrThrow();
    return row.steer === 1;
  }
});
