import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type Answer, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  leaseAgentExecution,
  leasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution, task, type WorkflowRunOptions } from "../harness/started-execution.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
beforeEach(async () => {
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const prompt = (text: string) => ({ agent: { prompt: text } });
const textBlock = (sequence: number, content: string) => ({ sequence, text: { content } });

/** A workflow of one action that the runner has taken on, with its environment up. */
async function takenOn(run: WorkflowRunOptions) {
  const { token, runner } = home;
  const started = await startExecution(server, { token, ...run });
  const work = await runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
  await succeeded(runner.report(work, { environment: { phase: "ENVIRONMENT_PHASE_RUNNING" } }));
  const step = (stepIndex: number, state: string, more: object = {}) =>
    succeeded(runner.report(work, { steps: [{ stepIndex, state: `STATE_${state}`, ...more }] }));
  const start = (stepIndex: number, outputKey = "") =>
    runner.agent("StartStepAgent", work, { stepIndex, outputKey });
  const state = (agentExecutionId: string) => runner.agent("GetStepAgent", work, { agentExecutionId });
  return {
    started,
    work,
    step,
    start,
    state,
    /** The run of a step, taken on. */
    async agent(stepIndex: number, outputKey = "") {
      const { agentExecutionId: id } = await succeeded(start(stepIndex, outputKey));
      return leasedAgentExecution(home, id, await leaseAgentExecution(runner, id));
    },
    action: async () => (await started.actions())[0],
  };
}

describe("an agent step", () => {
  test("is a run of the workflow's agent in the action's environment, with the prompt", async () => {
    const { step, start, agent, action, work, started } = await takenOn({
      steps: [task("true"), prompt("fix {{ .Parameters.what }}")],
      parameters: { what: "the build" },
    });
    await step(0, "RUNNING");
    await step(0, "DONE");
    await step(1, "RUNNING");
    const run = await agent(1);
    // A repetition answers the same run.
    expect((await succeeded(start(1))).agentExecutionId).toBe(run.id);
    expect(run.environmentId).toBe(work.action.environment.id);
    const { metadata, spec } = await run.get();
    expect(metadata).toMatchObject({
      role: "AGENT_EXECUTION_ROLE_WORKFLOW",
      workflowActionId: work.action.actionId,
      creator: (await started.execution()).metadata.executor,
    });
    expect(spec.agentId).toBe(home.agentId);
    expect((await action()).status.agentExecutionId).toBe(run.id);
    const [delivery] = await run.inputs().until(1);
    expect(delivery?.input?.input).toMatchObject({
      value: { inputs: [{ input: { value: { content: "fix the build" } } }] },
    });
  });

  test("is done when its agent has answered all its inputs", async () => {
    const { step, agent, state } = await takenOn({ steps: [prompt("go")] });
    await step(0, "RUNNING");
    const run = await agent(0);
    const stateOf = async () => {
      const { done, lastAnswer, agentExecution } = await succeeded(state(run.id));
      return [done, lastAnswer, agentExecution.status.phase];
    };
    // It is ready, and has not received its prompt yet.
    await run.wait();
    expect(await stateOf()).toEqual([false, "", "PHASE_WAITING_FOR_INPUT"]);
    const inputs = run.inputs();
    const [first] = await inputs.until(1);
    expect(await stateOf()).toEqual([false, "", "PHASE_WAITING_FOR_INPUT"]);
    await run.begin(first?.input?.id ?? "");
    await succeeded(run.report({ blocks: [textBlock(1, "I "), textBlock(2, "went.")] }));
    expect(await stateOf()).toEqual([false, "I went.", "PHASE_RUNNING"]);
    await run.wait([{ id: "soon", timer: "3600s" }]);
    expect((await stateOf())[0]).toBe(false);
    await run.say("more");
    await inputs.until(2);
    await run.begin("more");
    await succeeded(run.report({ blocks: [textBlock(3, "a".repeat(65_536)), textBlock(4, "b")] }));
    await run.wait([{ id: "word", userMessage: true }]);
    expect(await stateOf()).toEqual([true, "a".repeat(65_536), "PHASE_WAITING_FOR_INPUT"]);
    inputs.cancel();
  });

  test("ends with the action, or with its step", async () => {
    const { step, agent, started, work } = await takenOn({ steps: [prompt("one"), prompt("two")] });
    await step(0, "RUNNING");
    const first = await agent(0);
    await step(0, "DONE");
    expect((await succeeded(first.report())).stop).toBe(true);
    await succeeded(home.runner.finish(first.work, "OUTCOME_STOPPED"));
    await step(1, "RUNNING");
    const second = await agent(1);
    await started.cancel();
    expect((await succeeded(second.report())).stop).toBe(true);
    await succeeded(home.runner.finish(work, "OUTCOME_STOPPED"));
    await succeeded(home.runner.finish(second.work, "OUTCOME_STOPPED"));
    expect((await second.get()).status).toMatchObject({ phase: "PHASE_STOPPED", failureMessage: "" });
  });

  test("has a run of its own in each attempt", async () => {
    const { step, agent, work } = await takenOn({ steps: [prompt("go")] });
    await step(0, "RUNNING");
    const first = await agent(0);
    await succeeded(home.runner.finish(work, "OUTCOME_RELEASED"));
    await succeeded(home.runner.finish(first.work, "OUTCOME_STOPPED"));
    const again = await home.runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
    await succeeded(
      home.runner.report(again, {
        environment: { phase: "ENVIRONMENT_PHASE_RUNNING" },
        steps: [{ stepIndex: 0, state: "STATE_RUNNING" }],
      }),
    );
    const started = await succeeded(home.runner.agent("StartStepAgent", again, { stepIndex: 0 }));
    expect(started.agentExecutionId).not.toBe(first.id);
    // The run of the lost attempt is still the action's, and may be looked at.
    await succeeded(home.runner.agent("GetStepAgent", again, { agentExecutionId: first.id }));
  });

  test("is none that the action has not, that does not run yet, or that is not for an agent", async () => {
    const { step, start, state } = await takenOn({ steps: [task("true"), prompt("go")] });
    for (const [index, key] of [
      [0, ""],
      [2, ""],
      [1, "score"],
    ] as const) {
      expect(refusal(await start(index, key))).toEqual([400, "invalid_argument", "VALUE_UNUSABLE"]);
    }
    expect(refusal(await start(1))).toEqual([400, "failed_precondition", "PHASE_UNSUITABLE"]);
    await step(0, "RUNNING");
    await step(0, "DONE");
    await step(1, "RUNNING");
    await home.set({ agentPolicy: { allowedAgentIds: [crypto.randomUUID()] } });
    // The default agent is no choice that the policy could forbid.
    const { agentExecutionId } = await succeeded(start(1));
    await succeeded(state(agentExecutionId));
    const other = await takenOn({ steps: [prompt("go")] });
    expect(refusal(await other.state(agentExecutionId))).toEqual([404, "not_found", "NOT_FOUND"]);
  });
});

describe("a report by prompt", () => {
  test("asks an agent for each output, and keeps what it answers", async () => {
    const outputs = [
      { title: "Score", key: "score", prompt: "how good is it?", integer: {} },
      { title: "Lines", key: "lines", command: "wc -l", integer: {} },
    ];
    const { step, agent, start, action, work } = await takenOn({ steps: [{ report: { outputs } }] });
    await step(0, "RUNNING");
    const run = await agent(0, "score");
    const [delivery] = await run.inputs().until(1);
    expect(delivery?.input?.input).toMatchObject({
      value: { inputs: [{ input: { value: { content: "how good is it?" } } }] },
    });
    await run.begin(delivery?.input?.id ?? "");
    await succeeded(run.report({ blocks: [textBlock(1, "7")] }));
    await run.wait();
    for (const key of ["lines", "nothing", ""]) {
      expect(refusal(await start(0, key))).toEqual([400, "invalid_argument", "VALUE_UNUSABLE"]);
    }
    const bytes = (text: string) => Buffer.from(text).toString("base64");
    await step(0, "DONE", { outputs: { score: bytes("7"), lines: bytes("3") } });
    await succeeded(home.runner.finish(work));
    expect((await action()).status.phase).toBe("WORKFLOW_EXECUTION_ACTION_PHASE_DONE");
  });
});
