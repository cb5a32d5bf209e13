import type { Answer } from "../harness/call.ts";

/** Calls an operation, which must succeed; by default as the administrator. */
export type Call = (operation: string, body: unknown, token?: string) => Promise<Answer["body"]>;

/** Gives the runner of a token the one work of a kind that waits for it. */
async function leaseOne(call: Call, runnerToken: string, kind: string): Promise<Answer["body"]> {
  const request = { maxLeases: 1, kinds: [`WORK_KIND_${kind}`], wait: "0s" };
  return (await call("WorkService/LeaseWork", request, runnerToken)).works[0];
}

/** An environment that the runner has brought up; its id. No other may wait for the runner. */
export async function environmentAtWork(call: Call, runnerToken: string, spec: object): Promise<string> {
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "At work", spec });
  const { leaseId, fence } = await leaseOne(call, runnerToken, "ENVIRONMENT");
  await call("WorkService/FinishWork", { leaseId, fence, outcome: "OUTCOME_DONE" }, runnerToken);
  return environment.id;
}

/** An agent run that the runner has taken on, with two messages in its queue; the id of the lease. */
export async function agentAtWork(
  call: Call,
  runnerToken: string,
  { agentId, environmentId }: { readonly agentId: string; readonly environmentId: string },
): Promise<string> {
  const { agentExecutionId } = await call("AgentService/StartAgent", {
    agentId,
    name: "Held",
    codeContext: { environmentId },
  });
  const { leaseId } = await leaseOne(call, runnerToken, "AGENT");
  await sayTwoThings(call, agentExecutionId);
  return leaseId;
}

export async function sayTwoThings(call: Call, agentExecutionId: string): Promise<void> {
  for (const content of ["hello", "go on"]) {
    const userInput = { id: `the words "${content}"`, inputs: [{ text: { content } }] };
    await call("AgentService/SendToAgentExecution", { agentExecutionId, userInput });
  }
}

/** What came of an agent's step. */
export interface StepAtWork {
  /** Id of the lease of the action. */
  readonly actionLease: string;
  /** Id of the run that was started for the step. */
  readonly stepAgentExecution: string;
}

/** An action that the runner carries out, in whose first step an agent was asked. */
export async function stepAtWork(call: Call, runnerToken: string, workflowId: string): Promise<StepAtWork> {
  const contextOverride = { agent: { prompt: "mend the build" } };
  await call("WorkflowService/StartWorkflow", { workflowId, contextOverride });
  const { leaseId, fence } = await leaseOne(call, runnerToken, "ACTION");
  const lease = { leaseId, fence };
  await call(
    "WorkService/ReportProgress",
    {
      ...lease,
      environment: { phase: "ENVIRONMENT_PHASE_RUNNING" },
      steps: [{ stepIndex: 0, state: "STATE_RUNNING" }],
    },
    runnerToken,
  );
  const started = await call("AgentWorkService/StartStepAgent", { ...lease, stepIndex: 0 }, runnerToken);
  return { actionLease: leaseId, stepAgentExecution: started.agentExecutionId };
}
