import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  WorkflowExecution,
  WorkflowTriggerContextSchema,
  WorkflowTriggerEvent,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import { WorkflowService as WorkflowContract } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { operationsOf, type TestStore } from "../../harness/test-store.ts";

type Trigger = MessageInitShape<typeof WorkflowTriggerSchema>;

/** A context of one action, which waits for a runner as long as none is there. */
export const REPOSITORY = {
  context: {
    case: "repositories",
    value: {
      repositorySelector: {
        case: "repositoryUrls",
        value: { repoUrls: ["https://git.example.org/team/ship.git"] },
      },
    },
  },
} as const satisfies MessageInitShape<typeof WorkflowTriggerContextSchema>;

/** An action of one command. */
export function commandAction(command: string) {
  return {
    limits: { maxParallel: 1, maxTotal: 1 },
    steps: [{ step: { case: "task" as const, value: { command } } }],
  };
}

/** Workflows as a caller has them, and what came of their triggers. */
export function triggeredWorkflows({ deps, store }: TestStore, caller: Caller) {
  const service = new WorkflowService({ ...deps, draining: new AbortController().signal });
  const operations = operationsOf(WorkflowContract, service, caller);
  return {
    operations,
    /** A workflow with these triggers; its id. */
    async create(triggers: readonly Trigger[]): Promise<string> {
      const action = commandAction("true");
      const { workflow } = await operations.createWorkflow({
        name: "Nightly",
        triggers: [...triggers],
        action,
      });
      return workflow?.id ?? "";
    },
    /** The entries of a workflow's ledger, the oldest first. */
    async ledger(workflowId: string): Promise<WorkflowTriggerEvent[]> {
      const { triggerEvents } = await operations.listWorkflowTriggerEvents({
        filter: { workflowIds: [workflowId] },
        pagination: { pageSize: 100 },
      });
      return triggerEvents.reverse();
    },
    /** The executions of a workflow, the oldest first. */
    async executions(workflowId: string): Promise<WorkflowExecution[]> {
      const { workflowExecutions } = await operations.listWorkflowExecutions({
        filter: { workflowIds: [workflowId] },
        pagination: { pageSize: 100 },
      });
      return workflowExecutions.reverse();
    },
    /** When each of a workflow's time triggers is due next, in milliseconds since 1970 UTC. */
    async nextInstants(workflowId: string): Promise<number[]> {
      const rows = await builderOf(store.reader)
        .selectFrom("workflow_schedule")
        .select("next_at")
        .where("workflow_id", "=", workflowId)
        .orderBy("trigger_index")
        .execute();
      return rows.map(({ next_at }) => next_at);
    },
  };
}

export type TriggeredWorkflows = ReturnType<typeof triggeredWorkflows>;
