import type { Answer } from "../harness/call.ts";

/** The instance of the runner of every world. */
export const INSTANCE = "01900000-0000-7000-8000-000000000001";

/** Calls an operation, which must succeed; by default as the administrator. */
export type Call = (operation: string, body: unknown, token?: string) => Promise<Answer["body"]>;

/** Takes the work of a kind on that fits, and with it what else waits for the runner of the token. */
async function lease(
  call: Call,
  runnerToken: string,
  kind: string,
  fits: (work: Answer["body"]) => boolean,
): Promise<Answer["body"]> {
  const request = { maxLeases: 32, kinds: [`WORK_KIND_${kind}`], wait: "0s" };
  const { works } = await call("WorkService/LeaseWork", request, runnerToken);
  const found = works.find(fits);
  if (!found) throw new Error(`the runner was given no fitting work of the kind ${kind}`);
  return found;
}

/** An environment that the runner has brought up; its id. */
export async function environmentAtWork(call: Call, runnerToken: string, spec: object): Promise<string> {
  const { environment } = await call("EnvironmentService/CreateEnvironment", { name: "At work", spec });
  const { id } = environment;
  const { leaseId, fence } = await lease(
    call,
    runnerToken,
    "ENVIRONMENT",
    (work) => work.environment.environment.id === id,
  );
  await call("WorkService/FinishWork", { leaseId, fence, outcome: "OUTCOME_DONE" }, runnerToken);
  return id;
}

/** A report of three connections, two of them refused, that work in an environment has asked for. */
export function connectionsOf(environmentId: string) {
  const endedAt = "2026-01-02T03:04:05Z";
  const connection = (id: number) => ({ id: `01900000-0000-4000-8000-00000000000${id}`, port: 443, endedAt });
  return {
    environmentId,
    connections: [
      { ...connection(1), host: "a.example", refusal: "REFUSAL_NOT_ALLOWED" },
      { ...connection(2), host: "b.example", rule: "hosts[0]", sentBytes: "12", receivedBytes: "345" },
      { ...connection(3), host: "c.example", rule: "hosts[1]", refusal: "REFUSAL_NO_ADDRESS" },
    ],
  };
}

/** A report of two files that differ in an environment. */
export function changesOf(environmentId: string) {
  const counts = { changedFiles: 1, addedFiles: 1, addedLines: "2", deletedLines: "1" };
  const changed = {
    path: "hello/main.c",
    kind: "KIND_CHANGED",
    addedLines: "1",
    deletedLines: "1",
    sizeBytes: "12",
    patch: "@@ -1 +1 @@\n-int main;\n+int main();\n",
    oldMode: "100644",
    newMode: "100644",
  };
  const added = {
    path: "hello/notes.txt",
    kind: "KIND_ADDED",
    addedLines: "1",
    sizeBytes: "6",
    patch: "@@ -0,0 +1 @@\n+a note\n",
    newMode: "100644",
  };
  return {
    environmentId,
    repositories: [{ folder: "hello", branch: "mend", commitsAhead: 2, counts }],
    diffs: [
      { base: "DIFF_BASE_ENVIRONMENT", files: [changed, added] },
      { base: "DIFF_BASE_LAST_TURN", files: [added] },
    ],
  };
}

/** An agent run that the runner has taken on, with two messages in its queue and two blocks of output. */
export async function agentAtWork(
  call: Call,
  runnerToken: string,
  { agentId, environmentId }: { readonly agentId: string; readonly environmentId: string },
): Promise<{ readonly agentLease: string; readonly heldAgentExecution: string }> {
  const { agentExecutionId } = await call("AgentService/StartAgent", {
    agentId,
    name: "Held",
    codeContext: { environmentId },
  });
  const { leaseId, fence } = await lease(
    call,
    runnerToken,
    "AGENT",
    (work) => work.agent.agentExecution.id === agentExecutionId,
  );
  await sayTwoThings(call, agentExecutionId);
  const blocks = ["I look into it.", "It is the build."].map((content, index) => ({
    sequence: index + 1,
    text: { content },
  }));
  await call(
    "AgentWorkService/ReportAgent",
    { leaseId, fence, blocks, forkAbility: "AGENT_FORK_ABILITY_ANY_TURN" },
    runnerToken,
  );
  return { agentLease: leaseId, heldAgentExecution: agentExecutionId };
}

export async function sayTwoThings(call: Call, agentExecutionId: string): Promise<void> {
  for (const content of ["hello", "go on"]) {
    const userInput = { id: `the words "${content}"`, inputs: [{ text: { content } }] };
    await call("AgentService/SendToAgentExecution", { agentExecutionId, userInput });
  }
}

/** A comment on a line of {@link changesOf}. */
export const commentOn = (digest: string) => ({
  path: "hello/main.c",
  firstLine: 1,
  lastLine: 1,
  digest,
  text: "Say what it returns.",
});

/** Sends two reviews of a run's changes, which were reported, and keeps two drafts; returns the id of a draft. */
export async function reviewsOf(
  call: Call,
  agentExecutionId: string,
  environmentId: string,
): Promise<string> {
  const { changes } = await call("EnvironmentService/GetEnvironmentChanges", { environmentId });
  const comments = [commentOn(changes.digest)];
  for (const summary of ["Nearly there.", "One more thing."]) {
    const userInput = { id: `the review "${summary}"`, inputs: [{ review: { summary, comments } }] };
    await call("AgentService/SendToAgentExecution", { agentExecutionId, userInput });
  }
  const ids: string[] = [];
  for (const summary of ["To be sent", ""]) {
    const request = { agentExecutionId, summary, comments };
    ids.push((await call("AgentReviewService/CreateAgentReviewDraft", request)).draft.id);
  }
  return ids[0] ?? "";
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
  const started = await call("WorkflowService/StartWorkflow", { workflowId, contextOverride });
  const { leaseId, fence } = await lease(
    call,
    runnerToken,
    "ACTION",
    (work) => work.action.workflowExecutionId === started.workflowExecution.id,
  );
  const leased = { leaseId, fence };
  await call(
    "WorkService/ReportProgress",
    {
      ...leased,
      environment: { phase: "ENVIRONMENT_PHASE_RUNNING" },
      steps: [{ stepIndex: 0, state: "STATE_RUNNING" }],
    },
    runnerToken,
  );
  const step = await call("AgentWorkService/StartStepAgent", { ...leased, stepIndex: 0 }, runnerToken);
  return { actionLease: leaseId, stepAgentExecution: step.agentExecutionId };
}
