import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentInputSchema } from "#gen/service/v1/agent_pb.js";
import type { StoredAgentExecution } from "../../store/agent/agent-execution.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { queueInput } from "./agent-queue.ts";

/** Tells a new run what it is for, in the name of whoever it was started for. */
export async function queuePrompt(
  tx: WriteTransaction,
  run: StoredAgentExecution,
  content: string,
): Promise<void> {
  const id = tx.newId();
  const createdAt = timestampFromMs(tx.now);
  const { creator } = run.execution.metadata ?? {};
  const message = { id, createdAt, inputs: [{ input: { case: "text", value: { content } } as const }] };
  const input = create(AgentInputSchema, {
    id,
    createdAt,
    ...(creator && { sender: creator }),
    input: { case: "userInput", value: message },
  });
  await queueInput(tx, run, input);
}
