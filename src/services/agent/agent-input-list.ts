import type { ListAgentInputsRequest } from "#gen/service/v1/agent_service_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { pageSize, queryText } from "../../domain/page.ts";
import { findInputPage } from "../../store/agent/agent-input-list.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { onePage, readerFor } from "../call/page.ts";
import { getReadableAgentExecution } from "./agent-reading.ts";

/** One page of the inputs of a run: the queue as it is delivered, or all as they came. */
export async function listAgentInputs(
  deps: Pick<ServiceDependencies, "store" | "pageTokens" | "pageBytes">,
  caller: Caller,
  { agentExecutionId: id, includePast, pagination: asked }: ListAgentInputsRequest,
) {
  const query = queryText("ListAgentInputs", caller.organizationId, { id, includePast });
  const after = deps.pageTokens.read(query, asked?.token ?? "")?.key;
  const size = pageSize(asked);
  // The revision is read first: whoever sends it along is refused if the queue has changed since.
  const { queueRevision } = await getReadableAgentExecution(deps.store.reader, caller, id);
  const found = await findInputPage(readerFor(deps, caller), id, { includePast, after, limit: size + 1 });
  const { rows, pagination } = await onePage(deps, query, found, size);
  return { pagination, inputs: rows, queueRevision: BigInt(queueRevision) };
}
