import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentInputSchema } from "#gen/service/v1/agent_pb.js";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { queueInput } from "./agent-queue.ts";

/** Queues the prompt of a new agent execution as a message of its creator. */
export async function queuePrompt(
  tx: WriteTransaction,
  stored: StoredAgentExecution,
  content: string,
): Promise<void> {
  const id = tx.newId();
  const createdAt = timestampFromMs(tx.now);
  const { creator } = stored.execution.metadata ?? {};
  const message = { id, createdAt, inputs: [{ input: { case: "text", value: { content } } as const }] };
  const input = create(AgentInputSchema, {
    id,
    createdAt,
    ...(creator && { sender: creator }),
    input: { case: "userInput", value: message },
  });
  await queueInput(tx, stored, input);
}
