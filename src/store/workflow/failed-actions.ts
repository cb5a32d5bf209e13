import type { WorkflowExecutionAction } from "#gen/service/v1/workflow_pb.js";
import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";
import { ACTION_FACTS, type ActionRow, actionOfRow } from "./workflow-action-row.ts";

interface NextFailed {
  readonly executionId: string;
  readonly organizationId: string;
  readonly afterId: string;
  readonly limit: number;
}

const selectFailed = prepared<NextFailed, Omit<ActionRow, "progress">>(
  (db, { executionId, organizationId, afterId, limit }) =>
    db
      .selectFrom("workflow_action")
      .select([...ACTION_FACTS, "body"])
      .where("execution_id", "=", executionId)
      .where("organization_id", "=", organizationId)
      .where("id", ">", afterId)
      .where("failed", "=", 1)
      .orderBy("id")
      .limit(limit),
);

/** Number of actions that are read at a time: a write pauses only between its queries. */
const ACTIONS_PER_READ = 50;

/**
 * Returns the failed actions of an execution, in their order, the report last; without their steps
 * and errors, which a retry does not copy, and which are most of what there is to decode.
 */
export async function findFailedActions(
  db: Reader,
  { organizationId }: Scope,
  executionId: string,
): Promise<WorkflowExecutionAction[]> {
  const failed: WorkflowExecutionAction[] = [];
  for (;;) {
    const next = { executionId, organizationId, afterId: failed.at(-1)?.id ?? "", limit: ACTIONS_PER_READ };
    const rows = await selectFailed(db, next);
    failed.push(...rows.map((row) => actionOfRow({ ...row, progress: "{}" })));
    if (rows.length < ACTIONS_PER_READ) return failed;
  }
}
