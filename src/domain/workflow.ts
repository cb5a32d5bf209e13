import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { fold } from "./fold.ts";

/** What `search` looks through: one folded line each for name, description and id. */
export function workflowSearchText({ id, metadata }: Workflow): string {
  return fold([metadata?.name ?? "", metadata?.description ?? "", id].join("\n"));
}
