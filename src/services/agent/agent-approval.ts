import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentInputSchema } from "#gen/service/v1/agent_pb.js";
import type { Approval } from "#gen/service/v1/approval_pb.js";
import { hasStopped, isStopRequested } from "../../domain/agent/agent-execution.ts";
import { approvalOutcome } from "../../domain/approval/approval.ts";
import { findAgentExecution } from "../../store/agent/agent-execution.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { queueInput } from "./agent-queue.ts";

/**
 * Sends an agent execution the outcome of an approval that it asked for, as an input of the current turn, ahead of
 * the queue. An execution that is to stop gets none.
 */
export async function deliverApproval(tx: WriteTransaction, scope: Scope, approval: Approval): Promise<void> {
  const stored = await findAgentExecution(tx.db, scope, approval.asker?.agentExecutionId ?? "");
  if (!stored || hasStopped(stored.execution) || isStopRequested(stored.execution)) return;
  const input = create(AgentInputSchema, {
    id: tx.newId(),
    createdAt: timestampFromMs(tx.now),
    input: { case: "approval", value: approvalOutcome(approval) },
  });
  await queueInput(tx, stored, input, { steer: true });
}
