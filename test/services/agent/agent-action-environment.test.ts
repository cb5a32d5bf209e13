import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as Step,
} from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner, startedRun } from "../runner/work-service.ts";
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

/** An action without a step for an agent, which the runner has leased. */
async function leasedAction() {
  const workflow = await startedRun(made, caller);
  const [action] = await runs.lease(WorkKind.ACTION);
  if (action?.work.case !== "action") throw new Error("there is no action");
  return { workflow, action, environmentId: action.work.value.environment?.id ?? "" };
}

/** Reports in one call that the action's environment runs, that its steps are done, and that it is. */
async function reportAllOf(action: Work): Promise<void> {
  const steps = [0, 1].flatMap((stepIndex) => [
    { stepIndex, state: Step.RUNNING },
    { stepIndex, state: Step.DONE },
  ]);
  const { results } = await runner.reportWorks({
    reports: [
      {
        progress: { ...runs.named(action), environment: { phase: EnvironmentPhase.RUNNING }, steps },
        finish: { ...runs.named(action), outcome: Outcome.DONE },
      },
    ],
  });
  expect(results.map(({ result }) => result.case)).toEqual(["finish"]);
}

test.each(["running", "deleted"])(
  "a run that waits for the environment of an action to be %s is woken by the report that ends the action",
  async (phase) => {
    const { id, given } = await runs.running();
    const { workflow, action, environmentId } = await leasedAction();
    await runs.work.reportAgent({
      ...runs.named(given),
      state: State.WAITING,
      interests: [{ id: "one", interest: { case: "environment", value: { environmentId, phase } } }],
    });
    await reportAllOf(action);
    expect(await workflow.execution()).toMatchObject({ status: { doneActionCount: 1 } });
    const { inputs } = await runs.agents.listAgentInputs({ agentExecutionId: id });
    const payload = { case: "environment", value: { environmentId, phase } };
    expect(inputs.map(({ input }) => input)).toMatchObject([
      { case: "wakeEvent", value: { interestId: "one", payload } },
    ]);
  },
);

test("a run in the environment of an action stops with the report that ends the action", async () => {
  const { action, environmentId } = await leasedAction();
  await runner.reportProgress({ ...runs.named(action), environment: { phase: EnvironmentPhase.RUNNING } });
  const id = await runs.start({ codeContext: { context: { case: "environmentId", value: environmentId } } });
  const given = await runs.takeOn();
  await reportAllOf(action);
  expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: true });
  expect((await runs.get(id))?.status?.failureMessage).toContain("environment");
});
