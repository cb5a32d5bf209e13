import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import {
  type ReportAgentRequest_InterestSchema as InterestSchema,
  ReportAgentRequest_State as State,
} from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { fireAgentTimers } from "../../../src/jobs/agent-timers.ts";
import { fireInterest } from "../../../src/services/agent/agent-wake.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { testOnSqlite } from "../../harness/engine.ts";
import { listenToOwnCommits } from "../../harness/own-commits.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { addAgent, handleOf, inputsOf, type Runs, runsOn } from "./agents.ts";

const TURNS = "it counts turns of the event loop, in which only that engine answers";

type Interest = MessageInitShape<typeof InterestSchema>;

/** An organization with a runner that holds a run. */
interface Home {
  readonly caller: Caller;
  readonly runner: RegisteredRunner;
  readonly runs: Runs;
  readonly id: string;
  readonly given: Work;
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

const timer = (id: string, ms: number): Interest => ({
  id,
  interest: { case: "timer", value: durationFromMs(ms) },
});
const wait = ({ runs, given }: Home, interests: Interest[]) =>
  runs.work.reportAgent({ ...runs.named(given), state: State.WAITING, interests });
const wakesOf = async ({ runs, id }: Home) => {
  const { inputs } = await runs.agents.listAgentInputs({
    agentExecutionId: id,
    pagination: { pageSize: 100 },
  });
  return inputs.flatMap(({ input }) => (input.case === "wakeEvent" ? [input.value] : []));
};
const idsOf = async (of: Home) => (await wakesOf(of)).map(({ interestId }) => interestId);
const fire = () => fireAgentTimers(made.store, made.clock.now);

describe("timers", () => {
  test("fire when their time has come, not before, each for its own run", async () => {
    await wait(ours, [timer("one", 1_000), timer("two", 2_000)]);
    await wait(theirs, [timer("one", 1_500)]);
    made.clock.now += 999;
    await fire();
    expect(await idsOf(ours)).toEqual([]);
    made.clock.now += 1;
    await fire();
    expect(await wakesOf(ours)).toMatchObject([
      { interestId: "one", payload: { case: "timer", value: { firedAt: timestampFromMs(made.clock.now) } } },
    ]);
    expect(await idsOf(theirs)).toEqual([]);
    made.clock.now += 10_000;
    await fire();
    expect([await idsOf(ours), await idsOf(theirs)]).toEqual([["one", "two"], ["one"]]);
    await fire();
    expect([await idsOf(ours), await idsOf(theirs)]).toEqual([["one", "two"], ["one"]]);
  });

  test("that are looked for twice at the same time fire once", async () => {
    await wait(ours, [timer("one", 1_000)]);
    made.clock.now += 1_000;
    await Promise.all([fire(), fire(), fire()]);
    expect(await idsOf(ours)).toEqual(["one"]);
  });

  test("whose write fails are due as before, and nothing of the wake is left", async () => {
    await wait(ours, [timer("one", 1_000)]);
    made.clock.now += 1_000;
    const name = { executionId: await handleOf(made, ours.caller, ours.id), interestId: "one" };
    const failing = made.store.write(SYSTEM, "test", async (tx) => {
      await fireInterest(tx, ours.caller, name, { case: "timer", value: {} });
      throw new Error("killed in between");
    });
    await expect(failing).rejects.toThrow("killed in between");
    expect(await idsOf(ours)).toEqual([]);
    expect((await ours.runs.get(ours.id))?.status?.waitingInfo?.interests).toHaveLength(1);
    await fire();
    expect(await idsOf(ours)).toEqual(["one"]);
    expect((await ours.runs.get(ours.id))?.status?.waitingInfo).toBeUndefined();
  });

  test("fire all, however many are due", async () => {
    const environmentId = (await ours.runs.get(ours.id))?.status?.usedEnvironments[0]?.environmentId ?? "";
    const codeContext = { context: { case: "environmentId", value: environmentId } } as const;
    const others: Home[] = [];
    for (let count = 0; count < 15; count++) {
      const id = await ours.runs.start({ codeContext });
      const other = { ...ours, id, given: await ours.runs.takeOn() };
      others.push(other);
      await wait(
        other,
        Array.from({ length: 16 }, (_, index) => timer(`${index}`, 1_000)),
      );
    }
    made.clock.now += 1_000;
    await fire();
    for (const other of others) expect(await idsOf(other)).toHaveLength(16);
  });

  test("are looked for without a write, and cost nothing while none is due", async () => {
    await wait(ours, [timer("one", 60_000)]);
    const { commits } = listenToOwnCommits(made.store);
    await fire();
    expect(commits()).toBe(0);
  });
});

describe("a stream of inputs", () => {
  beforeEach(() => {
    // Time does not pass, so that nothing wakes the stream but what happens; the store goes on.
    jest.useFakeTimers({ doNotFake: ["setImmediate", "performance", "nextTick", "queueMicrotask", "Date"] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });
  /** Lets what is ready happen, without the time moving. */
  const settle = async () => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((next) => setImmediate(next));
  };

  testOnSqlite(TURNS)("writes nothing while there is nothing for it, and is woken by what is", async () => {
    const stream = inputsOf(made, ours.runner, ours.given);
    const next = stream.next();
    await settle();
    const commits = jest.fn();
    made.store.onCommit(commits);
    await settle();
    expect(commits).not.toHaveBeenCalled();
    const value = { id: "a", inputs: [{ input: { case: "text", value: { content: "a" } } as const }] };
    const input = { case: "userInput", value } as const;
    await ours.runs.agents.sendToAgentExecution({ agentExecutionId: ours.id, input });
    expect((await next)?.input?.id).toBe("a");
    // The message, and that it was delivered.
    expect(commits).toHaveBeenCalledTimes(2);
    await stream.leave();
  });

  testOnSqlite(TURNS)("sleeps through what happens to other runs", async () => {
    const waits: number[] = [];
    const { onChange } = made.store;
    const store = {
      ...made.store,
      onChange: (id: string, wake: () => void) =>
        onChange(id, () => {
          waits.push(1);
          wake();
        }),
    };
    const stream = inputsOf({ ...made, deps: { ...made.deps, store } }, ours.runner, ours.given);
    const next = stream.next();
    await settle();
    await wait(theirs, [timer("one", 1_000)]);
    await settle();
    expect(waits).toEqual([]);
    await wait(ours, []);
    await settle();
    expect(waits).toEqual([1]);
    await stream.leave();
    await expect(next).rejects.toThrow();
  });
});
