import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { expireLease, LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  idsOf,
  type LeasedAgentExecution,
  leaseAgentExecution,
  leasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const LOST = [409, "aborted", "LEASE_LOST"];
const UNUSABLE = [400, "invalid_argument", "VALUE_UNUSABLE"];
const textBlock = (sequence: number, content = `block ${sequence}`) => ({ sequence, text: { content } });

/** What a run has answered so far. */
async function blocksOf(
  run: LeasedAgentExecution,
): Promise<{ sequence: number; inputId: string; value: unknown }[]> {
  const watch = run.watch();
  const { lastSequence } = await succeeded(run.report());
  const messages = await watch.until(1 + Number(lastSequence));
  watch.cancel();
  return messages.flatMap(({ news }) =>
    news.case === "block"
      ? [
          {
            sequence: Number(news.value.sequence),
            inputId: news.value.inputId,
            value: news.value.block.value,
          },
        ]
      : [],
  );
}

describe("inputs", () => {
  test("are handed out one a turn, in order, once the agent has the one before and waits", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b", "c"]) await run.say(id);
    const inputs = run.inputs();
    expect(idsOf(await inputs.until(1))).toEqual(["a"]);
    expect(await run.receipts()).toEqual({ a: "DELIVERED", b: "QUEUED", c: "QUEUED" });
    // An agent that waits although it does not have its input is given no other.
    await run.wait();
    expect((await run.queue()).ids).toEqual(["b", "c"]);
    await run.begin("a");
    expect(await run.receipts()).toEqual({ a: "SEEN", b: "QUEUED", c: "QUEUED" });
    expect((await run.get()).status.phase).toBe("PHASE_RUNNING");
    await run.wait();
    expect(idsOf(await inputs.until(2))).toEqual(["a", "b"]);
    await succeeded(run.report({ seenInputIds: ["b"], state: "STATE_WAITING" }));
    expect(idsOf(await inputs.until(3))).toEqual(["a", "b", "c"]);
    expect((await run.queue()).revision).toBe(6);
    inputs.cancel();
  });

  test("that are steered go into the turn that is going on", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b", "c"]) await run.say(id);
    const inputs = run.inputs();
    await inputs.until(1);
    await run.begin("a");
    await run.sendControlInput({ steerQueuedMessage: { userInputId: "c" } });
    const deliveries = await inputs.until(2);
    expect(idsOf(deliveries)).toEqual(["a", "c"]);
    expect(deliveries.map(({ steer }) => steer)).toEqual([false, true]);
    await run.begin("c");
    expect(await run.receipts()).toEqual({ a: "SEEN", b: "QUEUED", c: "SEEN" });
    await run.wait();
    expect(idsOf(await inputs.until(3))).toEqual(["a", "c", "b"]);
    inputs.cancel();
  });

  test("reach a runner that waits for them without a second's delay", async () => {
    const run = await startLeasedAgentExecution(home);
    const inputs = run.inputs();
    await inputs.opened;
    const delays: number[] = [];
    for (let turn = 1; turn <= 10; turn++) {
      const began = performance.now();
      await run.say(String(turn));
      await inputs.until(turn);
      delays.push(performance.now() - began);
      await succeeded(run.report({ seenInputIds: [String(turn)], state: "STATE_WAITING" }));
    }
    // A stream that only looked each second would have looked just before each of them.
    expect(Math.min(...delays)).toBeLessThan(500);
    inputs.cancel();
  });

  test("that were not acknowledged come again in each stream, and no others do", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b", "c", "d"]) await run.say(id);
    const first = run.inputs();
    await first.until(1);
    await run.sendControlInput({ steerQueuedMessage: { userInputId: "d" } });
    expect(idsOf(await first.until(2))).toEqual(["a", "d"]);
    const second = run.inputs();
    expect(idsOf(await second.until(2))).toEqual(["a", "d"]);
    first.cancel();
    second.cancel();
    await succeeded(run.report({ seenInputIds: ["a"], state: "STATE_RUNNING" }));
    const third = run.inputs();
    expect(idsOf(await third.until(1))).toEqual(["d"]);
    await succeeded(run.report({ seenInputIds: ["a", "d"], state: "STATE_WAITING" }));
    expect(idsOf(await third.until(2))).toEqual(["d", "b"]);
    third.cancel();
  });

  test("end without an error when the run is to stop, which a report says, too", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.say("a");
    const inputs = run.inputs();
    await inputs.until(1);
    await run.say("b");
    await succeeded(
      post(server, "AgentService/StopAgentExecution", { agentExecutionId: run.id }, home.token),
    );
    expect((await inputs.ended).rawMessage).toBe("the stream ended without an error");
    expect(await succeeded(run.report({ seenInputIds: ["a"], state: "STATE_WAITING" }))).toMatchObject({
      stop: true,
    });
    expect(await run.receipts()).toEqual({ a: "SEEN", b: "QUEUED" });
    await succeeded(home.runner.finish(run.work, "OUTCOME_STOPPED"));
    expect((await run.get()).status.phase).toBe("PHASE_STOPPED");
  });

  test("are for the holder of a lease on an agent run", async () => {
    const run = await startLeasedAgentExecution(home);
    const fellow = await registerRunner(server, { token: home.token });
    const foreign = (await createAgentFixture(server)).runner;
    const strangers = [
      fellow.inputs(run.work),
      foreign.inputs(run.work),
      home.runner.inputs({ ...run.work, fence: "2" }),
      home.runner.inputs({ ...run.work, leaseId: run.id }),
    ];
    for (const { ended } of strangers) {
      const error = await ended;
      expect([error.code, error.findDetails(ErrorDetailSchema)[0]?.reason]).toEqual([
        Code.Aborted,
        ErrorReason.LEASE_LOST,
      ]);
    }
    await post(server, "EnvironmentService/CreateEnvironment", {}, home.token);
    const environment = await home.runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
    const error = await home.runner.inputs(environment).ended;
    expect(error.code).toBe(Code.FailedPrecondition);
    for (const [operation, body] of [
      ["ReportAgent", {}],
      ["StartSubagent", { prompt: "x" }],
      ["StartStepAgent", {}],
      ["GetStepAgent", { agentExecutionId: run.id }],
    ] as const) {
      expect(refusal(await home.runner.agent(operation, environment, body))).toEqual([
        400,
        "failed_precondition",
        "PHASE_UNSUITABLE",
      ]);
    }
    await succeeded(home.runner.finish(environment));
  });
});

describe("a report", () => {
  test("is taken whole or not at all", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b"]) await run.say(id);
    const inputs = run.inputs();
    await inputs.until(1);
    inputs.cancel();
    const good = { seenInputIds: ["a"], blocks: [textBlock(1)], state: "STATE_RUNNING" };
    const broken: object[] = [
      { ...good, seenInputIds: ["a", "b"] },
      { ...good, seenInputIds: ["a", "nothing"] },
      { ...good, blocks: [textBlock(1), textBlock(3)] },
      { ...good, blocks: [textBlock(0)] },
      { ...good, blocks: [textBlock(1), { sequence: 2 }] },
      { ...good, interests: [{ id: "i", userMessage: true }] },
      { ...good, state: "STATE_WAITING", interests: [{ id: "i", userMessage: false }] },
      {
        ...good,
        state: "STATE_WAITING",
        interests: [
          { id: "i", timer: "1s" },
          { id: "i", timer: "2s" },
        ],
      },
      { ...good, state: "STATE_WAITING", interests: [{ id: "i", subAgentId: run.id }] },
      {
        ...good,
        state: "STATE_WAITING",
        interests: [{ id: "i", environment: { environmentId: run.id, phase: "running" } }],
      },
    ];
    for (const progress of broken) expect(refusal(await run.report(progress))).toEqual(UNUSABLE);
    expect(await run.receipts()).toEqual({ a: "DELIVERED", b: "QUEUED" });
    expect(await succeeded(run.report(good))).toMatchObject({ lastSequence: "1", stop: false });
    expect(await run.receipts()).toEqual({ a: "SEEN", b: "QUEUED" });
  });

  test("may be repeated, whole or in part, and blocks are kept once", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.say("a");
    await run.inputs().until(1);
    const first = { seenInputIds: ["a"], blocks: [textBlock(1), textBlock(2)], state: "STATE_RUNNING" };
    await succeeded(run.report(first));
    await succeeded(run.report({ ...first, blocks: [textBlock(1, "other words"), textBlock(2)] }));
    const more = [textBlock(2), textBlock(3), { sequence: 4, inputId: "x", error: { message: "no" } }];
    expect(await succeeded(run.report({ blocks: more }))).toMatchObject({ lastSequence: "4" });
    expect(await blocksOf(run)).toMatchObject([
      { sequence: 1, inputId: "a", value: { content: "block 1" } },
      { sequence: 2, inputId: "a", value: { content: "block 2" } },
      { sequence: 3, inputId: "a", value: { content: "block 3" } },
      { sequence: 4, inputId: "x", value: { message: "no" } },
    ]);
  });

  test("tells what was used, which never falls, and the states of the agent and its goal", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.sendControlInput({ goal: { set: { objective: "ship" } } });
    const usage = { iterations: 3, inputTokens: 100, outputTokens: 50, contextWindowLength: 80 };
    await succeeded(
      run.report({ usage, mode: "AGENT_MODE_PLANNING", goalStatus: "AGENT_GOAL_STATUS_BLOCKED" }),
    );
    await succeeded(run.report({ usage: { ...usage, inputTokens: 10, contextWindowLength: 20 } }));
    const { status } = await run.get();
    expect(status).toMatchObject({
      iterations: "3",
      inputTokensUsed: "100",
      outputTokensUsed: "50",
      contextWindowLength: "20",
      mode: "AGENT_MODE_PLANNING",
      goal: { objective: "ship", status: "AGENT_GOAL_STATUS_BLOCKED" },
    });
    // What people order meanwhile is not taken back by an agent that does not know of it yet.
    await run.sendControlInput({ goal: { pause: {} } });
    await succeeded(run.report({ goalStatus: "AGENT_GOAL_STATUS_ACTIVE" }));
    expect((await run.get()).status.goal.status).toBe("AGENT_GOAL_STATUS_PAUSED");
  });

  test("counts for the goal what is used while the agent works towards it", async () => {
    const run = await startLeasedAgentExecution(home);
    const usage = (inputTokens: number) => ({ usage: { inputTokens, outputTokens: 1 } });
    await succeeded(run.report({ state: "STATE_RUNNING", ...usage(10) }));
    await run.sendControlInput({ goal: { set: { objective: "ship" } } });
    await succeeded(run.report(usage(30)));
    const first = (await run.get()).status.goal;
    expect([first.tokensUsed, Number.parseFloat(first.timeUsed)]).toEqual(["20", expect.any(Number)]);
    await run.sendControlInput({ goal: { pause: {} } });
    const paused = (await run.get()).status.goal;
    await succeeded(run.report(usage(100)));
    expect((await run.get()).status.goal).toMatchObject({ tokensUsed: "20", timeUsed: paused.timeUsed });
    await run.sendControlInput({ goal: { resume: {} } });
    await until(
      async () => {
        await succeeded(run.report({ state: "STATE_WAITING" }));
        await succeeded(run.report({ state: "STATE_RUNNING" }));
        return Number.parseFloat((await run.get()).status.goal.timeUsed);
      },
      (seconds) => seconds > Number.parseFloat(paused.timeUsed),
    );
  });

  test("renews the lease", async () => {
    const run = await startLeasedAgentExecution(home);
    const { expiresAt } = await succeeded(run.report());
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.parse(run.work.expiresAt));
  });

  test("leaves no row in the record unless it moves the run", async () => {
    const run = await startLeasedAgentExecution(home);
    const entries = async () =>
      (await home.call("EventService/ListAuditLogs", { filter: { subjectIds: [run.id] } })).body.entries
        .length;
    const before = await entries();
    await succeeded(run.report({ blocks: [textBlock(1)], usage: { inputTokens: 1 }, currentActivity: "x" }));
    expect(await entries()).toBe(before);
    await run.wait();
    expect(await entries()).toBe(before + 1);
    await run.wait();
    expect(await entries()).toBe(before + 1);
  });
});

describe("a lease that is lost", () => {
  // Of its own, so that no other test's run is given to it.
  let home: AgentFixture;
  beforeEach(async () => {
    home = await createAgentFixture(server);
  });

  /** A run that its runner gives back with each `release`, which tells whether the runner can have it again. */
  const runGivenBack = async () => {
    const run = await startLeasedAgentExecution(home);
    let { work } = run;
    const release = async () => {
      await succeeded(home.runner.finish(work, "OUTCOME_RELEASED"));
      work = (await home.runner.lease({ kinds: ["WORK_KIND_AGENT"] }))[0];
      return work !== undefined;
    };
    return { run, work: () => work, release };
  };

  test("gives the run to the next one, who gets in order what the agent did not", async () => {
    const run = await startLeasedAgentExecution(home);
    for (const id of ["a", "b", "c", "d"]) await run.say(id);
    const inputs = run.inputs();
    await inputs.until(1);
    await run.begin("a");
    await succeeded(run.report({ blocks: [textBlock(1)] }));
    for (const userInputId of ["d", "c"]) await run.sendControlInput({ steerQueuedMessage: { userInputId } });
    expect(idsOf(await inputs.until(3))).toEqual(["a", "d", "c"]);
    await expireLease(server, run.work);
    const error = await inputs.ended;
    expect(error.code).toBe(Code.Aborted);
    const work = await home.runner.leaseOne({ kinds: ["WORK_KIND_AGENT"] });
    expect([work.leaseId, work.fence, work.agent.lastSequence]).toEqual([run.work.leaseId, "2", "2"]);
    for (const late of [{}, { seenInputIds: ["d"] }, { blocks: [textBlock(3)] }]) {
      expect(refusal(await run.report(late))).toEqual(LOST);
    }
    expect(await run.receipts()).toEqual({ a: "SEEN", b: "QUEUED", c: "DELIVERED", d: "DELIVERED" });
    const next = leasedAgentExecution(home, run.id, work);
    expect(await blocksOf(next)).toMatchObject([
      { sequence: 1 },
      { sequence: 2, inputId: "a", value: { message: "the runner was lost in the middle of a turn" } },
    ]);
    const again = next.inputs();
    expect(idsOf(await again.until(2))).toEqual(["d", "c"]);
    await succeeded(next.report({ seenInputIds: ["d", "c"], state: "STATE_WAITING" }));
    expect(idsOf(await again.until(3))).toEqual(["d", "c", "b"]);
    again.cancel();
    await succeeded(home.runner.finish(work));
  });

  test("between turns tells of no turn, and the run waits on for what it waited for", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.wait([{ id: "i", userMessage: true }]);
    await succeeded(home.runner.finish(run.work, "OUTCOME_RELEASED"));
    const { status } = await run.get();
    expect(status).toMatchObject({
      phase: "PHASE_WAITING_FOR_INPUT",
      waitingInfo: { interests: [{ id: "i" }] },
    });
    const next = leasedAgentExecution(home, run.id, await leaseAgentExecution(home.runner, run.id));
    // The next runner says that its agent is ready: that is no new wait.
    await next.wait();
    expect((await next.get()).status.waitingInfo).toEqual(status.waitingInfo);
    await next.say("hello");
    expect(idsOf(await next.inputs().until(1))).toEqual(["hello"]);
    expect((await next.get()).status.waitingInfo).toBeUndefined();
    expect(await blocksOf(next)).toEqual([]);
    await succeeded(home.runner.finish(next.work));
  });

  test("three times without a step forward ends the run, and a step forward restarts the count", async () => {
    const { run, work, release } = await runGivenBack();
    expect([await release(), await release()]).toEqual([true, true]);
    await succeeded(home.runner.agent("ReportAgent", work(), { blocks: [textBlock(1)] }));
    expect([await release(), await release(), await release(), await release()]).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect((await run.get()).status).toMatchObject({
      phase: "PHASE_STOPPED",
      failureReason: "AGENT_EXECUTION_FAILURE_REASON_SERVICE",
    });
  });

  test.each([
    ["before its turn has begun", []],
    ["in its turn", [{ state: "STATE_RUNNING" }]],
  ])("between turns lets a run go on, but not with an input that is never got, %s", async (_, turn) => {
    const { run, work, release } = await runGivenBack();
    await run.wait();
    for (let loss = 0; loss < 4; loss++) expect(await release()).toBe(true);
    await run.say("deadly");
    for (const [said, goesOn] of [true, true, false].entries()) {
      const held = leasedAgentExecution(home, run.id, work());
      // That its program is ready, and what that says before it has the input, is no step forward.
      await held.wait();
      const inputs = held.inputs();
      expect(idsOf(await inputs.until(1))).toEqual(["deadly"]);
      inputs.cancel();
      for (const progress of turn) await succeeded(held.report(progress));
      await succeeded(held.report({ blocks: [textBlock(said + 1)] }));
      expect(await release()).toBe(goesOn);
    }
    expect((await run.get()).status).toMatchObject({
      phase: "PHASE_STOPPED",
      failureReason: "AGENT_EXECUTION_FAILURE_REASON_SERVICE",
      failureMessage: expect.stringContaining("in each of 3 attempts"),
    });
    expect(await run.receipts()).toEqual({ deadly: "DELIVERED" });
  });

  test("with the account of the creator blocked learns it", async () => {
    const run = await startLeasedAgentExecution({ ...home, token: home.member.token });
    const inputs = run.inputs();
    await inputs.opened;
    const { accountId } = home.member;
    await succeeded(post(server, "AccountService/BlockAccount", { accountId, reason: "test" }, home.token));
    expect((await inputs.ended).code).toBe(Code.PermissionDenied);
    for (const [operation, body] of [
      ["ReportAgent", {}],
      ["StartSubagent", { prompt: "x" }],
    ] as const) {
      const answer = await home.runner.agent(operation, run.work, body);
      expect(refusal(answer)).toEqual([403, "permission_denied", "ACCOUNT_BLOCKED"]);
    }
  });
});
