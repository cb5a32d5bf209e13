import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AgentWorkService as AgentWorkContract,
  type StreamInputsResponse,
} from "#gen/runner/v1/agent_work_service_pb.js";
import { AgentForm, type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import type { AgentOutputBlock } from "#gen/service/v1/agent_pb.js";
import {
  AgentService as AgentContract,
  type StartAgentRequestSchema,
} from "#gen/service/v1/agent_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { registerAgent } from "../../../src/services/agent/agent-registry.ts";
import { AgentService } from "../../../src/services/agent/agent-service.ts";
import { AgentWorkService } from "../../../src/services/agent/work/agent-work-service.ts";
import { findAgentExecutionHandle } from "../../../src/store/agent/agent-execution-search.ts";
import { contextOf, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { type RegisteredRunner, workDependencies } from "../runner/work-service.ts";

/** Agents as a caller has them. */
export function agentsOf(made: TestStore, caller: Caller) {
  return operationsOf(AgentContract, new AgentService(workDependencies(made)), caller);
}

/** What a runner calls for its agent runs. */
export function agentWorkOf(made: TestStore, runner: Pick<RegisteredRunner, "caller">) {
  return operationsOf(AgentWorkContract, new AgentWorkService(workDependencies(made)), runner.caller);
}

/** An open stream of the inputs of a run, each asked for when the one before has come. */
export interface InputStream {
  /** The next input, once there is one; undefined when the stream is over. */
  next(): Promise<StreamInputsResponse | undefined>;
  leave(): Promise<void>;
}

/** Opens the stream of the inputs of a run that a runner holds. */
export function inputsOf(
  made: TestStore,
  runner: Pick<RegisteredRunner, "caller">,
  { leaseId, fence }: Pick<Work, "leaseId" | "fence">,
): InputStream {
  const leaving = new AbortController();
  const method = AgentWorkContract.method.streamInputs;
  const stream = new AgentWorkService(workDependencies(made)).streamInputs(
    create(method.input, { leaseId, fence }),
    contextOf(method, runner.caller, leaving.signal),
  );
  return {
    next: async () => (await stream.next()).value ?? undefined,
    async leave() {
      leaving.abort();
      await stream.return(undefined);
    },
  };
}

/** Returns the blocks that a watch sends up to the last that there is, beginning after a number. */
export async function watchedBlocks(
  made: TestStore,
  caller: Caller,
  request: MessageInitShape<typeof AgentContract.method.watchAgentExecution.input>,
  isLast: (block: AgentOutputBlock) => boolean,
): Promise<AgentOutputBlock[]> {
  const leaving = new AbortController();
  const method = AgentContract.method.watchAgentExecution;
  const ctx = contextOf(method, caller, leaving.signal);
  const stream = new AgentService(workDependencies(made)).watchAgentExecution(
    create(method.input, request),
    ctx,
  );
  const blocks: AgentOutputBlock[] = [];
  for await (const { news } of stream) {
    if (news.case !== "block") continue;
    const block = news.value as AgentOutputBlock;
    blocks.push(block);
    if (isLast(block)) break;
  }
  leaving.abort();
  return blocks;
}

/** Registers an agent of an organization, or without one of all; its id. */
export function addAgent(
  { store }: TestStore,
  organizationId: string | null,
  {
    name = "coder",
    isDefault = false,
    takesSettings = false,
    command = "coder --quiet",
    form = AgentForm.TEXT,
  } = {},
): Promise<string> {
  return registerAgent(store, {
    organizationId,
    name,
    description: "",
    command,
    form,
    takesSettings,
    isDefault,
  });
}

/** Starts runs as a caller, on a runner, and leads them where a test wants them. */
export function runsOn(made: TestStore, caller: Caller, runner: RegisteredRunner) {
  const agents = agentsOf(made, caller);
  const work = agentWorkOf(made, runner);
  const kinds = (...kind: WorkKind[]) =>
    runner.leaseWork({ maxLeases: 1, kinds: kind, wait: { seconds: 0n } });
  const named = ({ leaseId, fence }: Pick<Work, "leaseId" | "fence">) => ({ leaseId, fence });
  const start = async (req: MessageInitShape<typeof StartAgentRequestSchema> = {}) =>
    (await agents.startAgent(req)).agentExecutionId;
  /** The works of a kind that the runner is given at once, one at most. */
  const lease = async (kind: WorkKind) => (await kinds(kind)).works;
  const bringUp = async () => {
    const [given] = await lease(WorkKind.ENVIRONMENT);
    if (!given) throw new Error("there is no environment to bring up");
    await runner.reportProgress({ ...named(given), environment: { phase: EnvironmentPhase.RUNNING } });
    await runner.finishWork({ ...named(given), outcome: Outcome.DONE });
  };
  const takeOn = async (): Promise<Work> => {
    const [given] = await lease(WorkKind.AGENT);
    if (!given) throw new Error("there is no run to take on");
    return given;
  };
  return {
    agents,
    work,
    named,
    start,
    lease,
    /** Brings the environment up whose turn it is. */
    bringUp,
    /** Leases the run whose turn it is. */
    takeOn,
    finish: (given: Work, outcome = Outcome.DONE, failure = {}) =>
      runner.finishWork({ ...named(given), outcome, failure }),
    get: async (agentExecutionId: string) =>
      (await agents.getAgentExecution({ agentExecutionId })).agentExecution,
    /** A run that the runner has taken on, in an environment of its own. */
    async running(req: MessageInitShape<typeof StartAgentRequestSchema> = {}) {
      const id = await start(req);
      await bringUp();
      return { id, given: await takeOn() };
    },
  };
}

export type Runs = ReturnType<typeof runsOn>;

/** Returns the handle of an execution of the caller's organization. */
export async function handleOf({ store }: TestStore, caller: Caller, id: string) {
  const handle = await findAgentExecutionHandle(store.reader, caller, id);
  if (handle === undefined) throw new Error(`there is no agent execution ${id}`);
  return handle;
}
