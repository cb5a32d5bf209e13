import type { Answer } from "./call.ts";
import { post } from "./call.ts";
import { doAction, type FakeRunner, registerRunner, runnerOf, succeeded } from "./fake-runner.ts";
import type { ReachableServer } from "./server.ts";
import { type StartedExecution, startExecution, task } from "./started-execution.ts";

/** The first commit in which both engines have feature levels, whose executions have one column for all that changes. */
export const OLDER = "c0846b1d250d0dea81b0e02b0079cc6e5b3232d7";

type Server = Pick<ReachableServer, "url" | "token">;
type Work = Answer["body"];

const STEPS = [task("one"), task("two"), task("three")];
const REPORT = { outputs: [{ title: "Lines", key: "lines", command: "wc -l <README", integer: { min: 0 } }] };

/** Executions in every phase, as a server has made them, and what its answers tell of them. */
export interface EarlierExecutions {
  readonly ids: readonly string[];
  /** One of its steps is done, and the next one runs. */
  readonly running: Work;
  /** Was asked to stop. */
  readonly stopping: Work;
  readonly runner: FakeRunner;
}

/** Leases an action, and ends what comes before it: the environments of lost attempts. */
async function leaseAction(runner: FakeRunner): Promise<Work> {
  for (;;) {
    const work = await runner.leaseOne();
    if (work.action) return work;
    await succeeded(runner.finish(work));
  }
}

/** Makes executions whose actions wait, run, stop, and have ended in each way, after one attempt and after two. */
export async function makeEarlierExecutions(server: Server): Promise<EarlierExecutions> {
  const runner = await registerRunner(server);
  const made: StartedExecution[] = [];
  const start = async (more: Parameters<typeof startExecution>[1] = {}) => {
    const started = await startExecution(server, { steps: STEPS, ...more });
    made.push(started);
    return started;
  };
  const progress = (work: Work, ...steps: object[]) => succeeded(runner.report(work, { steps }));
  const failStep = async (work: Work) => {
    const failure = { reason: "command_failed", message: "no such file" };
    await progress(
      work,
      { stepIndex: 0, state: "STATE_RUNNING" },
      { stepIndex: 0, state: "STATE_FAILED", failure },
    );
    await succeeded(runner.finish(work, "OUTCOME_FAILED"));
  };

  await start({ maxTime: "600s" });
  await doAction(runner, await leaseAction(runner));
  const mixed = await start({ actions: 2, maxParallel: 1 });
  await doAction(runner, await leaseAction(runner));
  await failStep(await leaseAction(runner));
  const again = await mixed.retry();
  made.push(again);
  await failStep(await leaseAction(runner));
  await start({ maxTime: "900s" });
  await succeeded(runner.finish(await leaseAction(runner), "OUTCOME_RELEASED"));
  const second = await leaseAction(runner);
  await doAction(runner, second);
  await start({ actions: 2, maxParallel: 2 });
  const running = await leaseAction(runner);
  await progress(
    running,
    { stepIndex: 0, state: "STATE_RUNNING" },
    { stepIndex: 0, state: "STATE_DONE", pullRequestUrl: "https://git.example.org/pull/1" },
  );
  await progress(running, { stepIndex: 1, state: "STATE_RUNNING" });
  await leaseAction(runner);
  const cancelled = await start();
  const stopping = await leaseAction(runner);
  await cancelled.cancel();
  await (await start()).cancel();
  await start({ actions: 3, maxParallel: 1, parameters: {}, report: REPORT });
  return { ids: made.map(({ executionId }) => executionId), running, stopping, runner };
}

/** Returns what the answers of a server tell of executions and their actions. */
export async function answersOn(server: Server, ids: readonly string[]) {
  const call = (operation: string, body: object) =>
    succeeded(post(server, `WorkflowService/${operation}`, body));
  const pagination = { pageSize: 100 };
  return {
    each: await Promise.all(
      ids.map(
        async (workflowExecutionId) =>
          (await call("GetWorkflowExecution", { workflowExecutionId })).workflowExecution,
      ),
    ),
    ...(await call("ListWorkflowExecutions", { pagination })),
    ...(await call("ListWorkflowExecutionActions", { pagination })),
  };
}

/** Brings the execution that runs, the one that stops and one that waits to their ends, on any server. */
export async function endEarlierExecutions(
  server: Server,
  { running, stopping, runner: { runnerId, token, environmentClassId } }: EarlierExecutions,
): Promise<void> {
  const runner = runnerOf(server, { runnerId, token, environmentClassIds: [environmentClassId] });
  for (const [stepIndex, state] of [
    [1, "STATE_DONE"],
    [2, "STATE_RUNNING"],
    [2, "STATE_DONE"],
  ])
    await succeeded(runner.report(running, { steps: [{ stepIndex, state }] }));
  await succeeded(runner.finish(running));
  await succeeded(runner.finish(stopping, "OUTCOME_STOPPED"));
  await doAction(runner, await leaseAction(runner));
}
