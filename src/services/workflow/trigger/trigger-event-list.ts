import type { ListWorkflowTriggerEventsRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { pageSize, queryText } from "../../../domain/page.ts";
import { findTriggerEventPage } from "../../../store/workflow/workflow-trigger-event.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { onePage, readerFor } from "../../call/page.ts";

/** One page of the ledger of the caller's organization, newest first. */
export async function listWorkflowTriggerEvents(
  deps: Pick<ServiceDependencies, "store" | "pageTokens" | "pageBytes">,
  caller: Caller,
  req: ListWorkflowTriggerEventsRequest,
) {
  const filter = {
    workflowIds: req.filter?.workflowIds ?? [],
    verdicts: req.filter?.verdicts ?? [],
  };
  const query = queryText("ListWorkflowTriggerEvents", caller.organizationId, filter);
  const before = deps.pageTokens.read(query, req.pagination?.token ?? "")?.id;
  const size = pageSize(req.pagination);
  const found = await findTriggerEventPage(readerFor(deps, caller), caller, filter, before, size + 1);
  const { rows, pagination } = await onePage(deps, query, found, size);
  return { pagination, triggerEvents: rows };
}
