import { createClient } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import { type EnvironmentPush, EnvironmentPush_State as State } from "#gen/service/v1/environment_push_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import type { FollowedPullRequest } from "#gen/service/v1/pull_request_pb.js";
import { queries, transport } from "../../../../api/server.tsx";
import { keepTyped, readTyped } from "../../../../api/typed.ts";

const environments = createClient(EnvironmentService, transport);

/** The parameters of a push, as typed: repeating the same call continues the same push. */
export interface PushOrder {
  readonly branch: string;
  readonly commitMessage: string;
  readonly force: boolean;
  /** Undefined when only the branch is pushed. */
  readonly pullRequest: { readonly title: string; readonly draft: boolean } | undefined;
}

/** A push of a run, from its request until it is done. */
export interface PushStatus {
  /** The request that is in flight, waits, or was executed last. */
  readonly order?: PushOrder;
  /** The approval that it waits for. */
  readonly approvalId?: string;
  /** True while the page waits for the runner. */
  readonly isBusy: boolean;
  /** The last response of the server. */
  readonly push?: EnvironmentPush | undefined;
  readonly pullRequest?: FollowedPullRequest | undefined;
  readonly error?: unknown;
}

const keyOf = (runId: string) => ["run", runId, "push"] as const;
const storedName = (runId: string) => `push ${runId}`;

/** Returns the name under which the tab keeps the text of a field until it is pushed. */
export const fieldName = (runId: string, field: "branch" | "title" | "message") => `push ${runId} ${field}`;

/** Returns what a tab remembers of an unfinished push after its page was left. */
function remembered(runId: string): PushStatus {
  try {
    const { order, approvalId } = JSON.parse(readTyped(storedName(runId)) ?? "{}");
    return { isBusy: false, ...(order && { order }), ...(approvalId && { approvalId }) };
  } catch {
    return { isBusy: false };
  }
}

function set(runId: string, status: PushStatus): void {
  queries.setQueryData<PushStatus>(keyOf(runId), status);
  const { order, approvalId, push } = status;
  const isEnded = !order || push?.state === State.DONE || status.error !== undefined;
  // Without storage it is forgotten when the page is left.
  keepTyped(storedName(runId), isEnded ? "" : JSON.stringify({ order, approvalId }));
}

/**
 * Follows the push of a run. It remains while other parts of the run are shown; an unfinished one also survives a
 * reload.
 */
export function usePush(runId: string): PushStatus {
  const read = () => queries.getQueryData<PushStatus>(keyOf(runId)) ?? remembered(runId);
  const { data } = useQuery({
    queryKey: keyOf(runId),
    queryFn: read,
    initialData: read,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  return data;
}

/** Forgets a push that cannot continue. */
export const forgetPush = (runId: string): void => set(runId, { isBusy: false });

/** Pushes, or continues the same push: each call waits for the runner for most of a minute. */
export async function push(runId: string, environmentId: string, order: PushOrder): Promise<void> {
  const { pullRequest, ...rest } = order;
  const what = { environmentId, ...rest };
  set(runId, { order, isBusy: true });
  try {
    for (;;) {
      const answer = pullRequest
        ? await environments.openPullRequest({ ...what, ...pullRequest })
        : await environments.pushEnvironmentBranch(what);
      const isBusy = answer.push?.state === State.GOING_ON;
      set(runId, {
        order,
        isBusy,
        push: answer.push,
        ...(answer.push?.approvalId && { approvalId: answer.push.approvalId }),
        ...("pullRequest" in answer && { pullRequest: answer.pullRequest }),
      });
      if (answer.push?.state === State.DONE) {
        for (const field of ["branch", "title", "message"] as const) keepTyped(fieldName(runId, field), "");
      }
      if (!isBusy) break;
    }
  } catch (error) {
    set(runId, { order, isBusy: false, error });
  }
  await queries.invalidateQueries();
}
