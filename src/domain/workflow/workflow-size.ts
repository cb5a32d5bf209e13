import { create, toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type Workflow, WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import { DomainError } from "../error.ts";

/**
 * Maximum size in bytes of the parts of a workflow that callers write. Every execution copies it,
 * every lease contains it and every report reads it. All that the contract's other limits allow
 * fits, plus 100 ASCII commands of 20,000 characters: 2.9 MB.
 */
export const WORKFLOW_BYTES = 4 * 1024 * 1024;

/**
 * Returns the size of the parts of a workflow that callers write: its name, description and spec,
 * without the flags `disabled` and `deleting`.
 * @returns bytes of the binary Protobuf form, in which texts are UTF-8
 */
export function workflowBytes({ metadata, spec }: Pick<Workflow, "metadata" | "spec">): number {
  const written = create(WorkflowSchema, {
    metadata: { name: metadata?.name ?? "", description: metadata?.description ?? "" },
    ...(spec && { spec: { ...spec, disabled: false, deleting: false } }),
  });
  return toBinary(WorkflowSchema, written).length;
}

/**
 * Requires that a workflow is at most {@link WORKFLOW_BYTES} large, or no larger than it was: one
 * that was stored before there was a limit can still be changed.
 * @param before the workflow before an update, or before parameters are inserted
 * @throws DomainError SIZE_EXCEEDED
 */
export function requireWorkflowFits(
  after: Pick<Workflow, "metadata" | "spec">,
  before?: Pick<Workflow, "metadata" | "spec">,
): void {
  const bytes = workflowBytes(after);
  if (bytes <= WORKFLOW_BYTES || (before && bytes <= workflowBytes(before))) return;
  throw new DomainError(
    ErrorReason.SIZE_EXCEEDED,
    `the workflow has ${bytes} bytes and may have ${WORKFLOW_BYTES}: move texts into a repository`,
    { resource: "workflow", bytes: String(bytes), limit_bytes: String(WORKFLOW_BYTES) },
  );
}
