import type { WorkflowExecutionPhase } from "#gen/service/v1/workflow_pb.js";
import { builderOf } from "../../../src/store/query-builder.ts";
import type { Scope } from "../../../src/store/store.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import type { TestStore } from "../../harness/test-store.ts";

/** What lists and sums look at of an execution; times in milliseconds since 1970 UTC. */
export interface Run {
  readonly phase: WorkflowExecutionPhase;
  readonly startedAt: number;
  /** As started, unless it says otherwise. */
  readonly finishedAt?: number | null;
  readonly failed?: boolean;
  readonly failedCount?: number;
}

/** Writes the row of an execution as it would have come to be in hours; its id. */
export function insertRun({ store }: TestStore, scope: Scope, workflowId: string, run: Run): Promise<string> {
  return store.write(SYSTEM, "test", async (tx) => {
    const id = tx.newId();
    await builderOf(tx.db)
      .insertInto("workflow_execution")
      .values({
        id,
        organization_id: scope.organizationId,
        workflow_id: workflowId,
        trigger_index: null,
        trigger_kind: "manual",
        creator_id: "",
        executor_id: "",
        executor_principal: 0,
        phase: run.phase,
        desired_phase: 0,
        expanded: 1,
        failed: run.failed ? 1 : 0,
        pending_count: 0,
        running_count: 0,
        failed_count: run.failedCount ?? 0,
        done_count: 0,
        stopped_count: 0,
        started_at: run.startedAt,
        finished_at: run.finishedAt === undefined ? run.startedAt : run.finishedAt,
        search_text: "",
        variables: "{}",
        retried_execution_id: null,
        action_failures: "[]",
        action_warnings: "[]",
        session: "",
        progress: "{}",
        body: JSON.stringify({ id, metadata: { workflowId } }),
      })
      .execute();
    return id;
  });
}
