import { useQuery } from "@connectrpc/connect-query";
import { useMemo } from "react";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";

const ENDED = [ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.CANCELLED];

/** Decided ones that are shown of a run: the newest. */
const MOST_ENDED = 100;

/** Most that wait of one run and are shown: a page of the contract. */
const MOST_PENDING = 100;

/**
 * Reads what a run asks for and what was decided of it, by which its conversation shows each where it was asked.
 * @param waiting the ids of those that wait, as the run tells
 */
export function useApprovals(runId: string, waiting: readonly string[]) {
  const pending = useQuery(
    ApprovalService.method.listApprovals,
    {
      filter: { agentExecutionIds: [runId], states: [ApprovalState.PENDING] },
      pagination: { pageSize: MOST_PENDING },
    },
    { enabled: waiting.length > 0 },
  );
  const ended = useQuery(ApprovalService.method.listApprovals, {
    filter: { agentExecutionIds: [runId], states: ENDED },
    pagination: { pageSize: MOST_ENDED },
  });
  const read = pending.data?.approvals;
  // What was read before the last question may have an earlier one, which is decided.
  const asked = useMemo(() => read?.filter(({ id }) => waiting.includes(id)), [read, waiting]);
  const decided = ended.data?.approvals;
  const approvals = useMemo(
    // One that both lists have was decided between them.
    () => [...new Map([...(asked ?? []), ...(decided ?? [])].map((each) => [each.id, each])).values()],
    [asked, decided],
  );
  return { approvals, error: pending.error ?? ended.error };
}
