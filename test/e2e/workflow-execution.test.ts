import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { doAction, type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type ScmHost, startScmHost } from "../harness/scm-host.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

let host: ScmHost;
let server: HostedServer;
beforeAll(async () => {
  host = await startScmHost({ kind: "gitlab" });
  server = await startHostedServer({
    args: [
      "--allow-organization-creation",
      ...LONG_LEASES,
      "--allow-private-remotes",
      "--plain-http-hosts",
      host.host,
    ],
  });
});
afterAll(async () => {
  await stopAll();
  await host.stop();
});

/** An organization of its own with a runner, so that no test takes the work of another. */
async function workplace(
  name: string,
): Promise<{ token: string; organizationId: string; runner: FakeRunner }> {
  const { token, organizationId } = await addOrganization(server, name);
  return { token, organizationId, runner: await registerRunner(server, { token, name }) };
}

const LINES = { outputs: [{ title: "Lines", key: "lines", command: "wc -l <README", integer: { min: 0 } }] };
const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Reports the outputs of an action's one step and finishes it. */
async function reportLines(runner: FakeRunner, work: Answer["body"], printed: string): Promise<void> {
  const steps = [
    { stepIndex: 0, state: "STATE_RUNNING" },
    { stepIndex: 0, state: "STATE_DONE", outputs: { lines: base64(printed) } },
  ];
  await succeeded(runner.report(work, { steps }));
  await succeeded(runner.finish(work));
}

async function failAction(runner: FakeRunner, work: Answer["body"]): Promise<void> {
  const failure = { reason: "command_failed", message: "the command ended with status 2" };
  const steps = [
    { stepIndex: 0, state: "STATE_RUNNING" },
    { stepIndex: 0, state: "STATE_FAILED", failure },
  ];
  await succeeded(runner.report(work, { steps }));
  await succeeded(runner.finish(work, "OUTCOME_FAILED", { failure }));
}

describe("an execution", () => {
  test("runs over its repositories, a few at a time, and ends with a report that one call reads", async () => {
    const { token, runner } = await workplace("fleet");
    const run = await startExecution(server, {
      token,
      actions: 5,
      maxParallel: 2,
      steps: [{ report: LINES }],
      report: LINES,
    });
    expect((await run.execution()).status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_PENDING",
      pendingActionCount: 5,
    });
    for (let done = 0; done < 5; done += 2) {
      const works = await runner.lease({ maxLeases: 9 });
      expect(works).toHaveLength(Math.min(2, 5 - done));
      expect((await run.execution()).status.runningActionCount).toBe(works.length);
      for (const work of works) await reportLines(runner, work, "3\n");
    }
    const report = await runner.leaseOne();
    expect(report.action).toMatchObject({
      report: true,
      outputs: Array(5).fill({ values: { lines: { intValue: "3" } } }),
    });
    await reportLines(runner, report, "15");
    expect((await run.execution()).status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_COMPLETED",
      doneActionCount: 6,
      failedActionCount: 0,
    });
    const filter = { workflowExecutionIds: [run.executionId] };
    const { outputs } = await run.call("ListWorkflowExecutionOutputs", { filter });
    const values = outputs.map((each: Answer["body"]) => each.values.lines.intValue);
    expect(values).toEqual(["3", "3", "3", "3", "3", "15"]);
  });

  test("is cancelled in the middle, and its runner asked to stop", async () => {
    const { token, runner } = await workplace("cancelled");
    const run = await startExecution(server, { token, actions: 3, maxParallel: 1 });
    const work = await runner.leaseOne();
    expect((await runner.renew(work)).body.stop).toBe(false);
    await run.cancel();
    await run.cancel();
    expect((await run.execution()).status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_STOPPING",
      runningActionCount: 1,
      stoppedActionCount: 2,
    });
    expect((await runner.report(work)).body.stop).toBe(true);
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    expect((await run.execution()).status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_STOPPED",
      stoppedActionCount: 3,
    });
    expect(await runner.lease()).toEqual([]);
  });

  test("that failed is retried with what failed only", async () => {
    const { token, runner } = await workplace("retried");
    const run = await startExecution(server, { token, actions: 3 });
    const [first, second, third] = await runner.lease({ maxLeases: 9 });
    await doAction(runner, first);
    await failAction(runner, second);
    await doAction(runner, third);
    expect((await run.execution()).status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_COMPLETED",
      failedActionCount: 1,
      doneActionCount: 2,
    });
    const failed = (await run.actions())[1];
    expect(failed.status.failures).toMatchObject([{ reason: "command_failed" }]);
    expect(failed.status.failureMessage).toBe("the command ended with status 2");

    const { workflowExecution: again } = await run.call("RetryFailedActions", {
      workflowExecutionId: run.executionId,
    });
    expect(again.metadata.retriedExecutionId).toBe(run.executionId);
    const work = await runner.leaseOne();
    expect(work.action.environment.metadata.name).toBe(failed.metadata.actionName);
    await doAction(runner, work);
    const { workflowExecution } = await run.call("GetWorkflowExecution", { workflowExecutionId: again.id });
    expect(workflowExecution.status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_COMPLETED",
      doneActionCount: 1,
    });
    const refused = await post(
      server,
      "WorkflowService/RetryFailedActions",
      { workflowExecutionId: again.id },
      token,
    );
    expect([refused.status, reasonOf(refused)]).toEqual([400, "PHASE_UNSUITABLE"]);
  });

  test("over a search begins once the host has answered", async () => {
    const { token, runner } = await workplace("searched");
    for (const name of ["ship-a", "ship-b", "crane"]) host.addRepository(`fleet/${name}`);
    const request = { runnerId: runner.runnerId, host: host.host, token: host.token };
    await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request, token));
    const repoSelector = { repoSearchString: "ship", scmHost: host.host };
    const run = await startExecution(server, {
      token,
      context: { repositories: { repoSelector } },
      maxParallel: 2,
      actions: 2,
    });
    const works = [await runner.leaseOne(), await runner.leaseOne()];
    expect(works.map(({ action }) => action.environment.metadata.name)).toEqual(["ship-a", "ship-b"]);
    for (const work of works) await doAction(runner, work);
    expect((await run.execution()).status.doneActionCount).toBe(2);
  });

  test("whose search fails says why", async () => {
    const { token, runner } = await workplace("unsearched");
    const request = { runnerId: runner.runnerId, host: host.host, token: "a token that is none" };
    await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request, token));
    const repoSelector = { repoSearchString: "ship", scmHost: host.host };
    const run = await startExecution(server, { token, context: { repositories: { repoSelector } } });
    const { status } = await until(run.execution, ({ metadata }) => metadata.finishedAt !== undefined);
    expect(status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_COMPLETED",
      failures: [{ reason: "repository_search_failed", meta: { host: host.host } }],
    });
    expect(server.logText()).not.toContain("a token that is none");
  });

  test("whose action takes too long has it stopped, which fails it", async () => {
    const { token, runner } = await workplace("slow");
    const run = await startExecution(server, { token, maxTime: "1s" });
    const work = await runner.leaseOne();
    expect(work.action.maxTime).toBe("1s");
    await until(
      () => runner.renew(work),
      ({ body }) => body.stop,
    );
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    const [action] = await run.actions();
    expect(action.status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_ACTION_PHASE_DONE",
      failures: [{ reason: "max_time_exceeded", meta: { max_time_seconds: "1" } }],
    });
    expect((await run.execution()).status.failedActionCount).toBe(1);
  });

  test("is started once by a request that is repeated with its key", async () => {
    const { token } = await workplace("repeated");
    const run = await startExecution(server, { token });
    const start = () =>
      post(server, "WorkflowService/StartWorkflow", { workflowId: run.workflowId }, token, {
        "idempotency-key": "k",
      });
    const answers = await Promise.all([start(), start(), start()]);
    const ids = answers.map(({ body }) => body.workflowExecution.id);
    expect(new Set(ids).size).toBe(1);
    const { workflowExecutions } = await run.call("ListWorkflowExecutions", {});
    expect(workflowExecutions.map(({ id }: Answer["body"]) => id)).toEqual([ids[0], run.executionId]);
  });

  test("of which every action was cancelled has not succeeded", async () => {
    const { token } = await workplace("cancelled");
    const run = await startExecution(server, { token });
    const [{ id: workflowExecutionActionId }] = await run.actions();
    await run.call("CancelWorkflowExecutionAction", { workflowExecutionActionId });
    const { workflowExecution } = await run.call("GetWorkflowExecution", {
      workflowExecutionId: run.executionId,
    });
    expect(workflowExecution.status).toMatchObject({
      phase: "WORKFLOW_EXECUTION_PHASE_STOPPED",
      conclusion: "WORKFLOW_EXECUTION_CONCLUSION_STOPPED",
      stoppedActionCount: 1,
    });
  });

  test("and its actions are for everybody in the organization to see, and for few to stop", async () => {
    const { token, organizationId } = await workplace("seen");
    const run = await startExecution(server, { token });
    const member = await addMember(server, { organizationId, email: "seen@example.org" });
    const workflowExecutionId = run.executionId;
    const [action] = await run.actions();
    const workflowExecutionActionId = action.id;
    const call = (operation: string, body: object) =>
      post(server, `WorkflowService/${operation}`, body, member.token);
    expect((await call("GetWorkflowExecution", { workflowExecutionId })).status).toBe(200);
    expect((await call("GetWorkflowExecutionAction", { workflowExecutionActionId })).status).toBe(200);
    for (const [operation, request] of [
      ["StartWorkflow", { workflowId: run.workflowId }],
      ["RetryFailedActions", { workflowExecutionId }],
      ["CancelWorkflowExecution", { workflowExecutionId }],
      ["CancelWorkflowExecutionAction", { workflowExecutionActionId }],
    ] as const) {
      const refused = await call(operation, request);
      expect([operation, refused.status, reasonOf(refused)]).toEqual([operation, 403, "PERMISSION_DENIED"]);
    }
    // Who made the workflow may cancel what an administrator started.
    const made = await startExecution(server, { token: member.token });
    const { workflowExecution } = await succeeded(
      post(server, "WorkflowService/StartWorkflow", { workflowId: made.workflowId }, token),
    );
    expect(
      (await call("CancelWorkflowExecution", { workflowExecutionId: workflowExecution.id })).status,
    ).toBe(200);
  });
});

describe("the lists of executions and actions", () => {
  let token: string;
  let first: Awaited<ReturnType<typeof startExecution>>;
  let second: typeof first;
  beforeAll(async () => {
    const place = await workplace("listed");
    token = place.token;
    first = await startExecution(server, { token, actions: 3 });
    for (const [index, work] of (await place.runner.lease({ maxLeases: 9 })).entries()) {
      if (index === 1) await failAction(place.runner, work);
      else await doAction(place.runner, work);
    }
    second = await startExecution(server, { token, actions: 2, steps: [task("one"), task("two")] });
  });

  const list = (operation: string, request: object) =>
    post(server, `WorkflowService/${operation}`, request, token);
  const executions = async (request: object) => {
    const { body } = await list("ListWorkflowExecutions", request);
    return body.workflowExecutions.map(({ id }: Answer["body"]) => id);
  };
  const actions = async (filter: object) => {
    const { body } = await list("ListWorkflowExecutionActions", { filter });
    return body.workflowExecutionActions;
  };

  test("show the newest execution first, unless asked otherwise", async () => {
    const [older, newer] = [first.executionId, second.executionId];
    expect(await executions({})).toEqual([newer, older]);
    expect(await executions({ sort: { field: "id", order: "SORT_ORDER_DESC" } })).toEqual([newer, older]);
    expect(await executions({ sort: { order: "SORT_ORDER_ASC" } })).toEqual([older, newer]);
    const refused = await list("ListWorkflowExecutions", { sort: { field: "name" } });
    expect([refused.status, reasonOf(refused)]).toEqual([400, "VALUE_UNUSABLE"]);
  });

  test("are narrowed by what executions are", async () => {
    const [older, newer] = [first.executionId, second.executionId];
    for (const [filter, expected] of [
      [{ workflowExecutionIds: [older] }, [older]],
      [{ workflowIds: [second.workflowId] }, [newer]],
      [{ statusPhases: ["WORKFLOW_EXECUTION_PHASE_COMPLETED"] }, [older]],
      [
        { statusPhases: ["WORKFLOW_EXECUTION_PHASE_PENDING", "WORKFLOW_EXECUTION_PHASE_COMPLETED"] },
        [newer, older],
      ],
      [{ hasFailedActions: true }, [older]],
      [{ hasFailedActions: false }, [newer]],
      [{ search: older.slice(-12).toUpperCase() }, [older]],
      [{ search: "RUN" }, [newer, older]],
      [{ search: "no such name" }, []],
      [{ hasFailedActions: true, workflowIds: [second.workflowId] }, []],
    ] as const) {
      expect([filter, await executions({ filter })]).toEqual([filter, expected]);
    }
  });

  test("are narrowed by what actions are, which come with their steps", async () => {
    const all = await actions({});
    expect(all).toHaveLength(5);
    expect(all.map(({ id }: Answer["body"]) => id)).toEqual(
      all.map(({ id }: Answer["body"]) => id).toSorted(),
    );
    expect(await actions({ workflowExecutionIds: [second.executionId] })).toEqual(all.slice(3));
    expect(await actions({ workflowIds: [first.workflowId] })).toEqual(all.slice(0, 3));
    expect(await actions({ workflowExecutionActionIds: [all[4].id] })).toEqual([all[4]]);
    expect(await actions({ phases: ["WORKFLOW_EXECUTION_ACTION_PHASE_DONE"] })).toEqual(all.slice(0, 3));
    const commands = all[4].status.stepStatuses.map(({ step }: Answer["body"]) => step.task.command);
    expect(commands).toEqual(["one", "two"]);
  });

  test("go on where the page before ended, and only for their own query", async () => {
    const seen: string[] = [];
    let pageToken = "";
    do {
      const { body } = await list("ListWorkflowExecutionActions", {
        pagination: { pageSize: 2, token: pageToken },
      });
      seen.push(...body.workflowExecutionActions.map(({ id }: Answer["body"]) => id));
      pageToken = body.pagination.nextToken;
    } while (pageToken !== "");
    expect(seen).toEqual((await actions({})).map(({ id }: Answer["body"]) => id));
    const { body } = await list("ListWorkflowExecutions", { pagination: { pageSize: 1 } });
    const { nextToken } = body.pagination;
    const rest = await list("ListWorkflowExecutions", { pagination: { token: nextToken } });
    expect(rest.body.workflowExecutions.map(({ id }: Answer["body"]) => id)).toEqual([first.executionId]);
    for (const [operation, request] of [
      ["ListWorkflowExecutions", { sort: { order: "SORT_ORDER_ASC" } }],
      ["ListWorkflowExecutions", { filter: { hasFailedActions: true } }],
      ["ListWorkflowExecutionActions", {}],
      ["ListWorkflowExecutionOutputs", {}],
    ] as const) {
      const refused = await list(operation, { ...request, pagination: { token: nextToken } });
      expect([operation, refused.status, reasonOf(refused)]).toEqual([operation, 400, "PAGE_TOKEN_INVALID"]);
    }
  });
});
