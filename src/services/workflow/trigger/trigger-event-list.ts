import type { ListWorkflowTriggerEventsRequest } from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../domain/identity/caller.ts";
import { findTriggerEventPage } from "../../../store/workflow/workflow-trigger-event.ts";
import { type ListDependencies, listPage } from "../../call/page.ts";

/** Returns one page of the trigger ledger of the caller's organization, newest first. */
export async function listWorkflowTriggerEvents(
  deps: ListDependencies,
  caller: Caller,
  req: ListWorkflowTriggerEventsRequest,
) {
  const filter = {
    workflowIds: req.filter?.workflowIds ?? [],
    verdicts: req.filter?.verdicts ?? [],
  };
  const { rows, page } = await listPage(deps, caller, {
    operation: "ListWorkflowTriggerEvents",
    parts: [filter],
    pagination: req.pagination,
    find: (db, after, limit) => findTriggerEventPage(db, caller, filter, after?.id, limit),
  });
  return { ...page, triggerEvents: rows };
}
