import type { ListAgentInputsRequest } from "#gen/service/v1/agent_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { findInputPage } from "../../store/agent/agent-input-list.ts";
import { type ListDependencies, listPage } from "../call/page.ts";
import { getReadableAgentExecution } from "./agent-reading.ts";

/** One page of the inputs of a run: the queue as it is delivered, or all as they came. */
export async function listAgentInputs(
  deps: ListDependencies,
  caller: Caller,
  { agentExecutionId: id, includePast, pagination }: ListAgentInputsRequest,
) {
  // The revision is read first: whoever sends it along is refused if the queue has changed since.
  const { queueRevision } = await getReadableAgentExecution(deps.store.reader, caller, id);
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListAgentInputs",
    parts: [{ id, includePast }],
    pagination,
    find: (db, after, limit) => findInputPage(db, id, { includePast, after: after?.key, limit }),
  });
  return { ...page, inputs: rows, queueRevision: BigInt(queueRevision) };
}
