import { create, fromJson, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import {
  FinishWorkRequest_Outcome as Outcome,
  ReportProgressRequest_StepProgress_State as State,
  type ReportProgressRequest_StepProgressSchema as StepProgressSchema,
  type FinishWorkRequest_StepPushSchema as StepPushSchema,
  WorkService as WorkContract,
} from "#gen/runner/v1/work_service_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { WorkflowExecution, WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import {
  CreateWorkflowRequestSchema,
  StartWorkflowRequestSchema,
  WorkflowService as WorkflowContract,
} from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { handlerOf } from "../../../src/services/access/work-handlers.ts";
import { WorkService } from "../../../src/services/runner/work-service.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { insertRunnerToken } from "../../harness/machine-token.ts";
import { operationsOf, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

export const LEASE_MS = 30_000;

/** URLs of this many repositories. */
export function repositories(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `https://git.example.org/team/r${index}.git`);
}

/** A manual trigger over repositories, in JSON. */
export function overRepositories(count: number): JsonObject {
  return { manual: {}, context: { repositories: { repositoryUrls: { repoUrls: repositories(count) } } } };
}

/** Steps of an action, in JSON. */
export const LINES = {
  report: { outputs: [{ title: "Lines", key: "lines", command: "wc -l <README", integer: { min: 0 } }] },
};

export function task(command = "true"): JsonObject {
  return { task: { command } };
}

export function action(maxParallel: number, maxTotal: number, ...steps: JsonObject[]): JsonObject {
  return { limits: { maxParallel, maxTotal }, steps: steps.length > 0 ? steps : [task()] };
}

/** Workflows as a caller has them. */
export function workflowsOf(testStore: TestStore, caller: Caller) {
  const draining = new AbortController().signal;
  const operations = operationsOf(
    WorkflowContract,
    new WorkflowService({ ...testStore.deps, draining }),
    caller,
  );
  const page = { pageSize: 100 };
  return {
    ...operations,
    /** A workflow that differs in these fields, in JSON, from one over a single repository; its id. */
    async make(workflow: JsonObject = {}): Promise<string> {
      const triggers = [overRepositories(1)];
      const req = { name: "Nightly", triggers, action: action(1, 100), ...workflow };
      const answer = await operations.createWorkflow(fromJson(CreateWorkflowRequestSchema, req));
      return answer.workflow?.id ?? "";
    },
    /** Starts a workflow; the request in JSON. */
    async start(workflowId: string, more: JsonObject = {}): Promise<WorkflowExecution> {
      const req = fromJson(StartWorkflowRequestSchema, { workflowId, ...more });
      const { workflowExecution } = await operations.startWorkflow(req);
      if (!workflowExecution) throw new Error("no execution was answered");
      return workflowExecution;
    },
    async execution(workflowExecutionId: string): Promise<WorkflowExecution> {
      const { workflowExecution } = await operations.getWorkflowExecution({ workflowExecutionId });
      if (!workflowExecution) throw new Error("no execution was answered");
      return workflowExecution;
    },
    /** The actions of an execution, in their order. */
    async actions(executionId: string): Promise<WorkflowExecutionAction[]> {
      const filter = { workflowExecutionIds: [executionId] };
      const answer = await operations.listWorkflowExecutionActions({ filter, pagination: page });
      return answer.workflowExecutionActions;
    },
  };
}

export type Workflows = ReturnType<typeof workflowsOf>;

/** A runner at work, without a network between. */
export async function runnerOf(testStore: TestStore, administrator: Caller, name = "north") {
  const { store, keys, deps, clock } = testStore;
  const { organizationId } = administrator;
  const { runnerId, classId } = await servicesOf(testStore, administrator).runnerWithClass(name);
  const { id: tokenId } = await insertRunnerToken(store, keys, { organizationId, runnerId });
  await store.write({ id: "test", principal: 0 }, "test", ({ db }) =>
    builderOf(db)
      .updateTable("token")
      .set({ expires_at: Number.MAX_SAFE_INTEGER })
      .where("id", "=", tokenId)
      .execute(),
  );
  const caller: Caller = {
    organizationId,
    subject: create(SubjectSchema, { id: runnerId, principal: Principal.RUNNER }),
    role: "runner",
    accountId: "",
    tokenId,
    readOnly: false,
  };
  const draining = new AbortController();
  const service = new WorkService({
    ...deps,
    draining: draining.signal,
    leaseMs: LEASE_MS,
    handlerOf,
    onPartFailure: () => undefined,
    onUnusableWork: () => undefined,
  });
  const operations = operationsOf(WorkContract, service, caller);
  const named = ({ leaseId, fence }: Pick<Work, "leaseId" | "fence">) => ({ leaseId, fence });
  const report = (work: Work, ...steps: MessageInitShape<typeof StepProgressSchema>[]) =>
    operations.reportProgress({ ...named(work), steps });
  return {
    runnerId,
    classId,
    operations,
    caller,
    service,
    draining,
    /** Leases actions, at most as many; without waiting. */
    async lease(maxLeases = 1): Promise<Work[]> {
      const wait = { seconds: 0n };
      const { works } = await operations.leaseWork({ maxLeases, kinds: [WorkKind.ACTION], wait });
      return works;
    },
    report,
    /** Does all steps of an action and finishes it; each output is what `print` says. */
    async complete(work: Work, print = "7"): Promise<void> {
      for (const [stepIndex, { step }] of actionOf(work).steps.entries()) {
        const outputs =
          step.case === "report"
            ? Object.fromEntries(step.value.outputs.map(({ key }) => [key, new TextEncoder().encode(print)]))
            : {};
        await report(work, { stepIndex, state: State.RUNNING }, { stepIndex, state: State.DONE, outputs });
      }
      await operations.finishWork({ ...named(work), outcome: Outcome.DONE });
    },
    /** Fails the first step of an action and finishes it so. */
    async fail(work: Work): Promise<void> {
      await report(work, { stepIndex: 0, state: State.RUNNING }, { stepIndex: 0, state: State.FAILED });
      await operations.finishWork({ ...named(work), outcome: Outcome.FAILED });
    },
    finish: (work: Work, outcome: Outcome, push?: MessageInitShape<typeof StepPushSchema>) =>
      operations.finishWork({ ...named(work), outcome, ...(push && { push }) }),
    renew: (work: Work) => operations.renewLease(named(work)),
    /** Falls silent until its leases have run out, which ends them. */
    async fallSilent(): Promise<void> {
      clock.now += LEASE_MS;
      await endExpiredLeases(store, clock.now);
    },
  };
}

export type AtWork = Awaited<ReturnType<typeof runnerOf>>;

/** What is to be done of a leased action. */
export function actionOf(work: Work) {
  if (work.work.case !== "action") throw new Error(`the work is ${work.work.case}, no action`);
  return work.work.value;
}

export { Outcome, State };
