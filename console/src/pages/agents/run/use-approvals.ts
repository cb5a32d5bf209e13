import { useQuery } from "@connectrpc/connect-query";
import { useMemo } from "react";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";

const ENDED = [ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.CANCELLED];

/** Maximum decided approvals of a run that are shown, newest first. */
const MAX_ENDED = 100;

/** Maximum pending approvals of a run that are shown: one page of the contract. */
const MAX_PENDING = 100;

/**
 * Reads a run's pending and decided approvals, which its conversation shows where they were requested.
 * @param waiting the ids of the pending approvals, as the run reports them
 */
export function useApprovals(runId: string, waiting: readonly string[]) {
  const pending = useQuery(
    ApprovalService.method.listApprovals,
    {
      filter: { agentExecutionIds: [runId], states: [ApprovalState.PENDING] },
      pagination: { pageSize: MAX_PENDING },
    },
    { enabled: waiting.length > 0 },
  );
  const ended = useQuery(ApprovalService.method.listApprovals, {
    filter: { agentExecutionIds: [runId], states: ENDED },
    pagination: { pageSize: MAX_ENDED },
  });
  const read = pending.data?.approvals;
  // A result from before the last request may still contain an approval that has since been decided.
  const asked = useMemo(() => read?.filter(({ id }) => waiting.includes(id)), [read, waiting]);
  const decided = ended.data?.approvals;
  const approvals = useMemo(
    // An approval in both lists was decided between the two calls.
    () => [...new Map([...(asked ?? []), ...(decided ?? [])].map((each) => [each.id, each])).values()],
    [asked, decided],
  );
  return { approvals, error: pending.error ?? ended.error };
}
