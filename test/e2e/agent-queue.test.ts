import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let home: AgentFixture;
let run: LeasedAgentExecution;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const text = (content: string, id = "") => ({ userInput: { id, inputs: [{ text: { content } }] } });

describe("a queue", () => {
  test("takes 50 inputs, and no 51st that is no control input", async () => {
    run = await startLeasedAgentExecution(home);
    await run.wait([{ id: "tea", timer: "3600s" }]);
    await run.say("0");
    for (let count = 1; count < 49; count++) await run.say(String(count));
    await succeeded(run.send({ controlInput: { compact: {} } }));
    expect((await run.queue()).ids).toHaveLength(50);
    const byRunner = home.runner.token;
    for (const [input, token] of [
      [text("x"), home.token],
      [{ agentMessage: { payload: "x", senderExecutionId: run.id } }, byRunner],
      [{ wakeEvent: { interestId: "tea", timer: {} } }, byRunner],
    ] as const) {
      const full = await run.send(input, {}, token);
      expect(refusal(full)).toEqual([429, "resource_exhausted", "QUEUE_FULL"]);
      expect(full.body.details[0].debug.metadata).toEqual({ limit: "50" });
    }
    // What is in it already is no 51st, and to rearrange it is none.
    await run.say("7");
    await run.sendControlInput({ moveQueuedMessage: { userInputId: "7" } });
    await run.sendControlInput({ deleteQueuedMessage: { userInputId: "7" } });
    await run.say("another");
    expect((await run.queue()).ids).toHaveLength(50);
  });

  test("that is full of messages takes what is asked of the agent at once, up to 100, and a stop", async () => {
    run = await startLeasedAgentExecution(home);
    for (let count = 0; count < 50; count++) await run.say(String(count));
    await run.sendControlInput({ goal: { set: { objective: "Ship it" } } });
    expect((await run.get()).status.goal.objective).toBe("Ship it");
    await run.sendControlInput({ goal: { pause: {} } });
    await run.sendControlInput({ goal: { clear: {} } });
    expect((await run.get()).status.goal).toBeUndefined();
    for (let count = 53; count < 100; count++) await run.sendControlInput({ compact: {} });
    const full = await run.send({ controlInput: { compact: {} } });
    expect(refusal(full)).toEqual([429, "resource_exhausted", "QUEUE_FULL"]);
    expect(full.body.details[0].debug.metadata).toEqual({ limit: "100" });
    await succeeded(
      post(server, "AgentService/StopAgentExecution", { agentExecutionId: run.id }, home.token),
    );
    expect((await run.get()).spec.desiredPhase).toBe("PHASE_STOPPED");
  });

  test("of a run that was asked to stop, or has stopped, takes nothing", async () => {
    run = await startLeasedAgentExecution(home);
    await run.say("before");
    await succeeded(
      post(server, "AgentService/StopAgentExecution", { agentExecutionId: run.id }, home.token),
    );
    for (const input of [text("x"), text("x", "before"), { controlInput: { compact: {} } }]) {
      expect(refusal(await run.send(input))).toEqual([400, "failed_precondition", "PHASE_UNSUITABLE"]);
    }
    await succeeded(home.runner.finish(run.work, "OUTCOME_STOPPED"));
    expect((await run.get()).status.phase).toBe("PHASE_STOPPED");
    expect(refusal(await run.send(text("x")))).toEqual([400, "failed_precondition", "PHASE_UNSUITABLE"]);
  });
});

describe("rearranging", () => {
  beforeAll(async () => {
    run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b", "c", "d"]) await run.say(id);
  });

  test("moves a message before another, or to the end", async () => {
    await run.sendControlInput({ moveQueuedMessage: { userInputId: "d", beforeUserInputId: "b" } });
    expect((await run.queue()).ids).toEqual(["a", "d", "b", "c"]);
    await run.sendControlInput({ moveQueuedMessage: { userInputId: "a" } });
    expect(await run.queue()).toEqual({ ids: ["d", "b", "c", "a"], revision: 6 });
  });

  test("leaves the revision of a queue that it does not change", async () => {
    await run.sendControlInput({ moveQueuedMessage: { userInputId: "a" } });
    expect((await run.queue()).revision).toBe(6);
  });

  test("steers a message ahead of the rest", async () => {
    await run.sendControlInput({ steerQueuedMessage: { userInputId: "c" } });
    expect((await run.queue()).ids).toEqual(["c", "d", "b", "a"]);
  });

  test("deletes a message for good, and keeps that it was", async () => {
    await run.sendControlInput({ deleteQueuedMessage: { userInputId: "b" } });
    expect(await run.queue()).toEqual({ ids: ["c", "d", "a"], revision: 8 });
    expect(await run.receipts()).toEqual({ a: "QUEUED", b: "DELETED", c: "QUEUED", d: "QUEUED" });
  });

  test("of what is not queued is not found", async () => {
    const orders = [
      { deleteQueuedMessage: { userInputId: "b" } },
      { deleteQueuedMessage: { userInputId: "nothing" } },
      { steerQueuedMessage: { userInputId: "b" } },
      { moveQueuedMessage: { userInputId: "b" } },
      { moveQueuedMessage: { userInputId: "a", beforeUserInputId: "b" } },
    ];
    for (const controlInput of orders) {
      expect(refusal(await run.send({ controlInput }))).toEqual([404, "not_found", "NOT_FOUND"]);
    }
  });

  test("under an expected revision is done by one of two who saw the same queue", async () => {
    const { revision } = await run.queue();
    const move = (userInputId: string) =>
      run.send({ controlInput: { moveQueuedMessage: { userInputId } } }, { expectedQueueRevision: revision });
    const answers = await Promise.all([move("d"), move("c")]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const refused = answers.find(({ status }) => status === 409);
    expect(refused && refusal(refused)).toEqual([409, "aborted", "QUEUE_CHANGED"]);
    expect(refused?.body.details[0].debug.metadata).toEqual({ revision: String(revision + 1) });
    expect((await run.queue()).revision).toBe(revision + 1);
  });

  test("holds a message to the revision, too", async () => {
    const { revision } = await run.queue();
    expect(refusal(await run.send(text("x"), { expectedQueueRevision: revision - 1 }))[2]).toBe(
      "QUEUE_CHANGED",
    );
    await succeeded(run.send(text("x", "new"), { expectedQueueRevision: revision }));
    // A repetition is known by its id, although the queue has changed since.
    await succeeded(run.send(text("x", "new"), { expectedQueueRevision: revision }));
  });
});

describe("orders about the agent", () => {
  test("go to the runner ahead of every message, and change the goal at once", async () => {
    run = await startLeasedAgentExecution(home);
    await run.say("message");
    await run.sendControlInput({ goal: { set: { objective: "ship it" } } });
    await run.sendControlInput({ compact: {} });
    const [goal, compact, message] = (await run.queue()).ids;
    expect(message).toBe("message");
    const inputs = run.inputs();
    const deliveries = await inputs.until(2);
    expect(deliveries.map(({ input, steer }) => [input?.id, input?.input.case, steer])).toEqual([
      [goal, "controlInput", true],
      [compact, "controlInput", true],
    ]);
    inputs.cancel();
    expect((await run.get()).status.goal).toMatchObject({
      objective: "ship it",
      status: "AGENT_GOAL_STATUS_ACTIVE",
    });
    const statuses: unknown[] = [];
    for (const action of ["pause", "resume", "complete", "clear"]) {
      await run.sendControlInput({ goal: { [action]: {} } });
      statuses.push((await run.get()).status.goal?.status);
    }
    expect(statuses).toEqual([
      "AGENT_GOAL_STATUS_PAUSED",
      "AGENT_GOAL_STATUS_ACTIVE",
      "AGENT_GOAL_STATUS_COMPLETED",
      undefined,
    ]);
    const none = await run.send({ controlInput: { goal: { pause: {} } } });
    expect(refusal(none)).toEqual([400, "failed_precondition", "PHASE_UNSUITABLE"]);
  });
});
