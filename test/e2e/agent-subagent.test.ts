import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  leaseAgentExecution,
  leasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { decisionOf } from "../harness/policies.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];

/** A parent of its own organization, and what it may do with sub-agents. */
async function parent(request: object = {}) {
  home = await createAgentFixture(server);
  const { runner } = home;
  const run = await startLeasedAgentExecution(home, request);
  const start = (body: object = {}) =>
    runner.agent("StartSubagent", run.work, { prompt: "look into it", ...body });
  return {
    ...home,
    run,
    start,
    async started(body: object = {}): Promise<string> {
      return (await succeeded(start(body))).agentExecutionId;
    },
  };
}

describe("a sub-agent", () => {
  test("is a run in the same environment, for the same people, of the parent that holds the lease", async () => {
    const { run, started, runner, token } = await parent({ name: "Parent" });
    const id = await started({ name: "Child" });
    const work = await leaseAgentExecution(runner, id);
    expect(work.agent.environment.id).toBe(run.environmentId);
    const child = leasedAgentExecution({ server, token, runner }, id, work);
    const [mine, its] = [await run.get(), await child.get()];
    expect(its.metadata).toMatchObject({
      name: "Child",
      creator: mine.metadata.creator,
      sessionId: mine.metadata.sessionId,
      parentExecutionId: run.id,
      role: "AGENT_EXECUTION_ROLE_DEFAULT",
    });
    expect(its.spec.agentId).toBe(mine.spec.agentId);
    expect(mine.status.subagents).toMatchObject([{ id, name: "Child", phase: "PHASE_RUNNING" }]);
    const [delivery] = await child.inputs().until(1);
    expect(delivery?.input?.input).toMatchObject({
      case: "userInput",
      value: { inputs: [{ input: { case: "text", value: { content: "look into it" } } }] },
    });
    await succeeded(child.report({ currentActivity: "reads" }));
    expect((await run.get()).status.subagents[0].currentActivity).toBe("reads");
  });

  test("is shown to who watches its parent", async () => {
    const { run, started } = await parent();
    const watch = run.watch();
    await watch.until(1);
    const id = await started();
    await watch.find(
      ({ news }) => news.case === "agentExecution" && news.value.status?.subagents[0]?.id === id,
    );
    watch.cancel();
  });

  test("started under a key is started once", async () => {
    const { started } = await parent();
    const ids = await Promise.all([1, 2, 3, 4].map(() => started({ key: "same" })));
    expect(new Set(ids).size).toBe(1);
    expect(await started({ key: "other" })).not.toBe(ids[0]);
    expect(await started()).not.toBe(await started());
  });

  test("is one of at most five that have not stopped, unless the policy says otherwise", async () => {
    const { run, start, started, runner, set } = await parent();
    const children = [];
    for (let count = 0; count < 5; count++) children.push(await started());
    const sixth = await start();
    expect(refusal(sixth)).toEqual([400, "failed_precondition", "POLICY_DENIED"]);
    expect(decisionOf(sixth).fieldPath).toBe("agentPolicy.maxSubagentsPerEnvironment");
    // One that is known by its key is no sixth.
    await succeeded(runner.finish(await leaseAgentExecution(runner, children[0] ?? "")));
    await started({ key: "k" });
    await started({ key: "k" });
    expect(refusal(await start())[2]).toBe("POLICY_DENIED");
    await set({ agentPolicy: { maxSubagentsPerEnvironment: 6 } });
    await started();
    expect(refusal(await start())[2]).toBe("POLICY_DENIED");
    expect((await run.get()).status.subagents).toHaveLength(7);
  });

  test("is one of one where a hundred are started at the same time for one place", async () => {
    const { start, set } = await parent();
    await set({ agentPolicy: { maxSubagentsPerEnvironment: 1 } });
    const answers = await Promise.all(Array.from({ length: 100 }, () => start()));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter((answer) => reasonOf(answer) === "POLICY_DENIED")).toHaveLength(99);
  });

  test("is held against the policies, and the agents that there are", async () => {
    const { start, set, agentId } = await parent({
      extAgentSettings: { reasoningEffort: "EXT_AGENT_REASONING_EFFORT_HIGH" },
    });
    await set({ agentPolicy: { allowedAgentIds: [crypto.randomUUID()] } });
    expect(decisionOf(await start({ agentId })).fieldPath).toBe("agentPolicy.allowedAgentIds");
    await set({ agentPolicy: { allowedAgentIds: [agentId] } });
    await succeeded(start({ agentId }));
    expect(refusal(await start({ agentId: crypto.randomUUID() }))).toEqual([404, "not_found", "NOT_FOUND"]);
    await set({ agentPolicy: { allowedExtAgentReasoningEfforts: ["EXT_AGENT_REASONING_EFFORT_LOW"] } });
    const { fieldPath } = decisionOf(await start());
    expect(fieldPath).toBe("agentPolicy.allowedExtAgentReasoningEfforts");
    await set({ agentPolicy: { allowedExtAgentReasoningEfforts: [] } });
    expect(refusal(await start({ prompt: "a\u202eb" }))).toEqual([400, "invalid_argument", "TEXT_DECEPTIVE"]);
  });

  test("stops with its parent, which then starts no other", async () => {
    const { run, start, started, runner, token } = await parent();
    const [held, waiting] = [await started(), await started()];
    const work = await leaseAgentExecution(runner, held);
    await succeeded(post(server, "AgentService/StopAgentExecution", { agentExecutionId: run.id }, token));
    const phases = async () =>
      (await run.get()).status.subagents.map(({ phase }: { phase: string }) => phase);
    expect(await phases()).toEqual(["PHASE_RUNNING", "PHASE_STOPPED"]);
    expect(await succeeded(runner.agent("ReportAgent", work))).toMatchObject({ stop: true });
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    expect(await phases()).toEqual(["PHASE_STOPPED", "PHASE_STOPPED"]);
    expect(refusal(await start())).toEqual([400, "failed_precondition", "PHASE_UNSUITABLE"]);
    expect(waiting).not.toBe(held);
  });
});
