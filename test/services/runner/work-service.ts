import { create } from "@bufbuild/protobuf";
import { WorkService as WorkContract } from "#gen/runner/v1/work_service_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { RunnerPolicy } from "#gen/service/v1/runner_pb.js";
import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService as WorkflowContract } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller, Role } from "../../../src/domain/identity/caller.ts";
import { handlerOf } from "../../../src/services/access/work-handlers.ts";
import type { ReportUnusableWork } from "../../../src/services/runner/unusable-work.ts";
import { WorkService, type WorkServiceDependencies } from "../../../src/services/runner/work-service.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { operationsOf, type TestStore } from "../../harness/test-store.ts";
import { servicesOf } from "../services.ts";

export const LEASE_MS = 30_000;

/** Dependencies of the service of runners: with the end of the server in the test's hand. */
export function workDependencies(
  { deps }: TestStore,
  draining = new AbortController(),
  onUnusableWork: ReportUnusableWork = () => undefined,
  onPartFailure: WorkServiceDependencies["onPartFailure"] = (_operation, cause) => {
    throw cause;
  },
) {
  return { ...deps, handlerOf, draining: draining.signal, leaseMs: LEASE_MS, onUnusableWork, onPartFailure };
}

/** A runner that has registered, and what it can call; the test says what it reports. */
export async function registeredRunner(
  made: TestStore,
  caller: Caller,
  options: {
    readonly name?: string;
    readonly local?: boolean;
    /** The policies that it says to keep; it says nothing when absent. */
    readonly keeps?: readonly RunnerPolicy[];
    readonly draining?: AbortController;
    readonly onUnusableWork?: ReportUnusableWork;
  } = {},
) {
  const { name = "north", local = false, keeps, draining, onUnusableWork } = options;
  const { runner, exchangeToken } = await servicesOf(made, caller).runners.createRunner({ name });
  const runnerId = runner?.runnerId ?? "";
  const service = new WorkService(workDependencies(made, draining, onUnusableWork));
  const callerAs = async (role: Role, token: string): Promise<Caller> => ({
    organizationId: caller.organizationId,
    subject: create(SubjectSchema, { id: runnerId, principal: Principal.RUNNER }),
    role,
    accountId: "",
    tokenId: await tokenIdOf(made, token),
    readOnly: false,
  });
  const newcomer = operationsOf(WorkContract, service, await callerAs("exchange", exchangeToken));
  const { token, environmentClassIds } = await newcomer.register({
    version: "1",
    local,
    ...(keeps && { keptPolicies: { policies: [...keeps] } }),
    environmentClass: { displayName: `Class of ${name}`, description: "for tests" },
  });
  const itself = await callerAs("runner", token);
  const work = operationsOf(WorkContract, service, itself);
  return {
    runnerId,
    /** The runner as a caller. */
    caller: itself,
    classId: environmentClassIds[0] ?? "",
    ...work,
    /** The works that it is given at once. */
    async lease(maxLeases = 1) {
      return (await work.leaseWork({ maxLeases, wait: { seconds: 0n } })).works;
    },
    /** The one work that it is given at once. */
    async leaseOne() {
      const [given] = (await work.leaseWork({ maxLeases: 1, wait: { seconds: 0n } })).works;
      if (!given) throw new Error("the runner was given no work");
      return given;
    },
  };
}

export type RegisteredRunner = Awaited<ReturnType<typeof registeredRunner>>;

/** Returns the id of a token. */
export async function tokenIdOf({ store, keys }: TestStore, token: string): Promise<string> {
  const { id } = await builderOf(store.reader)
    .selectFrom("token")
    .select("id")
    .where("hash", "=", keys.readToken(token)?.hash ?? new Uint8Array())
    .executeTakeFirstOrThrow();
  return id;
}

/** What a workflow is started with; what is left out is one repository, and no limit. */
export interface StartedRunOptions {
  readonly actions?: number;
  readonly maxParallel?: number;
  readonly maxTimeS?: number;
  readonly environmentClassId?: string;
  /** Whether it has a report of one output, the whole number `count`. */
  readonly report?: boolean;
  /** Prompt of an agent that its first step is for, in place of a command. */
  readonly agentPrompt?: string;
}

/** A workflow over repositories, each with two steps, that a user made and started. */
export async function startedRun(made: TestStore, caller: Caller, options: StartedRunOptions = {}) {
  const { actions = 1, maxParallel = actions, maxTimeS = 0, environmentClassId = "", report } = options;
  const workflows = operationsOf(WorkflowContract, new WorkflowService(workDependencies(made)), caller);
  const repoUrls = Array.from(
    { length: actions },
    (_, index) => `https://git.example.org/team/r${index}.git`,
  );
  const context = {
    context: {
      case: "repositories",
      value: { repositorySelector: { case: "repositoryUrls", value: { repoUrls } }, environmentClassId },
    },
  } as const;
  const command = (text: string) => ({ step: { case: "task", value: { command: text } } }) as const;
  const agent = (prompt: string) => ({ step: { case: "agent", value: { prompt } } }) as const;
  const { agentPrompt } = options;
  const output = {
    title: "Count",
    key: "count",
    schema: { case: "integer", value: {} },
    extraction: { case: "command", value: "cat count" },
  } as const;
  const limits = { maxParallel, maxTotal: actions };
  const { workflow } = await workflows.createWorkflow({
    name: "Run",
    triggers: [{ trigger: { case: "manual", value: {} }, context }],
    action: {
      limits: { ...limits, perExecution: { maxTime: { seconds: BigInt(maxTimeS) } } },
      steps: [agentPrompt ? agent(agentPrompt) : command("make"), command("make test")],
    },
    ...(report && {
      report: {
        limits: { maxParallel: 1, maxTotal: 1 },
        steps: [{ step: { case: "report", value: { outputs: [output] } } }],
      },
    }),
  });
  const workflowId = workflow?.id ?? "";
  const { workflowExecution } = await workflows.startWorkflow({ workflowId });
  const workflowExecutionId = workflowExecution?.id ?? "";
  return {
    workflows,
    workflowExecutionId,
    async execution() {
      const found = await workflows.getWorkflowExecution({ workflowExecutionId });
      return found.workflowExecution;
    },
    /** Its actions, in their order. */
    async actions(): Promise<WorkflowExecutionAction[]> {
      const filter = { workflowExecutionIds: [workflowExecutionId] };
      const pagination = { pageSize: 100 };
      return (await workflows.listWorkflowExecutionActions({ filter, pagination })).workflowExecutionActions;
    },
  };
}
