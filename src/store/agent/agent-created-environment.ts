import { prepared } from "../prepared.ts";
import type { Handle, WriteTransaction } from "../store.ts";

const updateCreatedEnvironment = prepared<{ id: string }, unknown>((db, { id }) =>
  db.updateTable("agent_execution").set({ made_environment: 1 }).where("id", "=", id),
);

/** Marks the environment of an execution as created for it, so that it is deleted with it. */
export async function setCreatedEnvironment(
  tx: WriteTransaction,
  id: Handle<"agent_execution">,
): Promise<void> {
  await updateCreatedEnvironment(tx.db, { id });
}
