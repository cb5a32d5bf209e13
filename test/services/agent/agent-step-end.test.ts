import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as Step,
} from "#gen/runner/v1/work_service_pb.js";
import { AgentExecutionRole, AgentMode, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { stepKey } from "../../../src/domain/agent/step-agent.ts";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { insertStartedAgentExecution } from "../../../src/services/agent/agent-execution.ts";
import { resolveAgent } from "../../../src/services/agent/resolve-agent.ts";
import { findEnvironment } from "../../../src/store/environment/environment.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner, startedRun } from "../runner/work-service.ts";
import { addAgent, type Runs, runsOn } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, null, { isDefault: true });
});
afterEach(() => made.close());

const phaseOf = async (id: string) => (await runs.get(id))?.status?.phase;

/** An action whose first step runs, and a run that carries the step out. */
async function steppedRun() {
  const workflow = await startedRun(made, caller, { agentPrompt: "Fix the build" });
  const [action] = await runs.lease(WorkKind.ACTION);
  if (action?.work.case !== "action") throw new Error("there is no action");
  const { actionId, environment } = action.work.value;
  const report = (steps: object[]) => runner.reportProgress({ ...runs.named(action), steps });
  await runner.reportProgress({ ...runs.named(action), environment: { phase: EnvironmentPhase.RUNNING } });
  await report([{ stepIndex: 0, state: Step.RUNNING }]);
  const { execution } = await made.store.write(SYSTEM, "test", async (tx) => {
    const present = await findEnvironment(tx.db, caller, environment?.id ?? "");
    if (!present) throw new Error("the action has no environment");
    return insertStartedAgentExecution(tx, caller, {
      agent: await resolveAgent(tx.db, caller, ""),
      creator: caller.subject,
      accountId: caller.accountId,
      role: AgentExecutionRole.WORKFLOW,
      name: "",
      sessionId: "",
      environment: present,
      createdEnvironment: false,
      mode: AgentMode.EXECUTION,
      action: { id: actionId, stepKey: stepKey(1, 0, "") },
    });
  });
  const given = await runs.takeOn();
  return { workflow, action, actionId, report, id: execution.id, given };
}

/** Expects that a run is asked to stop, without a failure of its own. */
async function expectStopped(id: string, given: Work): Promise<void> {
  expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: true });
  await runs.finish(given, Outcome.STOPPED);
  expect((await runs.get(id))?.status).toMatchObject({ phase: Phase.STOPPED, failureMessage: "" });
}

test("a run goes on through its step, and is asked to stop with it", async () => {
  const { id, given, report } = await steppedRun();
  expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: false });
  await report([{ stepIndex: 0, state: Step.DONE }]);
  await expectStopped(id, given);
});

test("a run is asked to stop when its step fails", async () => {
  const { id, given, report } = await steppedRun();
  await report([{ stepIndex: 0, state: Step.FAILED, failure: { reason: "x", message: "no" } }]);
  await expectStopped(id, given);
});

test("a run is asked to stop when its action is cancelled", async () => {
  const { id, given, workflow } = await steppedRun();
  const { workflowExecutionId } = workflow;
  await workflow.workflows.cancelWorkflowExecution({ workflowExecutionId });
  await expectStopped(id, given);
});

test("a run of an attempt that is lost stops with it", async () => {
  const { id, given } = await steppedRun();
  // The run's lease is renewed, and the action's is not.
  made.clock.now += LEASE_MS - 1;
  await runner.renewLease(runs.named(given));
  made.clock.now += 1;
  await endExpiredLeases(made.store, made.clock.now);
  await expectStopped(id, given);
});

test("a run that somebody tied to an action goes on without it", async () => {
  const { workflow, action, actionId } = await steppedRun();
  const tied = await runs.start({ workflowActionId: actionId });
  await runner.finishWork({ ...runs.named(action), outcome: Outcome.FAILED, failure: { message: "no" } });
  expect((await workflow.actions())[0]?.id).toBe(actionId);
  expect(await phaseOf(tied)).toBe(Phase.PENDING);
  expect((await runs.get(tied))?.metadata).toMatchObject({
    workflowActionId: actionId,
    role: AgentExecutionRole.DEFAULT,
  });
});
