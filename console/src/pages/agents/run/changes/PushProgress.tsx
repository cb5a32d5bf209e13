import { useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import {
  type EnvironmentPush,
  EnvironmentPush_Outcome as Outcome,
  EnvironmentPush_Stage as Stage,
  EnvironmentPush_State as State,
} from "#gen/service/v1/environment_push_pb.js";
import { Problem } from "../../../../parts/Problem.tsx";
import { State as StateMark } from "../../../../parts/State.tsx";
import { approvalState } from "../../../approvals/approval-state.ts";
import { forgetPush, type PushStatus, push } from "./push.ts";

const OUTCOMES: Readonly<Record<Outcome, string>> = {
  [Outcome.UNSPECIFIED]: "was pushed",
  [Outcome.CREATED]: "is new",
  [Outcome.ADVANCED]: "has more commits than before",
  [Outcome.REPLACED]: "has lost commits",
  [Outcome.UNCHANGED]: "had this commit already",
};

const STAGES: Readonly<Record<Stage, string>> = {
  [Stage.UNSPECIFIED]: "Begins",
  [Stage.LOOKING]: "Inspecting files",
  [Stage.COPYING]: "Copying and checking new objects",
  [Stage.SENDING]: "Sending",
  [Stage.TAKING]: "The remote is processing it",
};

interface PushProgressProps {
  readonly runId: string;
  readonly environmentId: string;
  readonly status: PushStatus;
}

/**
 * Shows the progress of a push: from the request over the runner's stages or an approval to the branch and its pull
 * request.
 */
export function PushProgress({ runId, environmentId, status }: PushProgressProps) {
  const { order, approvalId, isBusy, error } = status;
  if (error) return <Problem error={error} />;
  if (!order) return null;
  const again = () => void push(runId, environmentId, order);
  if (isBusy) return <Going push={status.push} opensPullRequest={order.pullRequest !== undefined} />;
  if (status.push?.state === State.DONE) return <Done push={status.push} status={status} />;
  if (approvalId) return <Waiting runId={runId} approvalId={approvalId} onCarryOut={again} />;
  return (
    <p className="bar" role="status">
      A push was in progress when you left the page. The runner is continuing it.{" "}
      <Button variant="default" size="compact-xs" onClick={again}>
        Show its progress
      </Button>
    </p>
  );
}

function Going({
  push,
  opensPullRequest,
}: {
  readonly push: EnvironmentPush | undefined;
  readonly opensPullRequest: boolean;
}) {
  const percent = push?.progress?.percent ?? 0;
  return (
    <p className="bar" role="status">
      <StateMark tone="running" word={opensPullRequest ? "Opening a pull request" : "Pushing the branch"} />{" "}
      <span>
        {STAGES[push?.progress?.stage ?? Stage.UNSPECIFIED]} … {percent > 0 && `${percent} %`}
      </span>
    </p>
  );
}

function Done({ push, status }: { readonly push: EnvironmentPush; readonly status: PushStatus }) {
  const { title = "", url = "" } = status.pullRequest?.pullRequest ?? {};
  return (
    <p className="bar" role="status">
      <StateMark tone="done" word={status.pullRequest ? "Pull request opened" : "Pushed"} />{" "}
      <span>
        The branch <code>{push.branch}</code> {OUTCOMES[push.outcome]}:{" "}
        <code>{push.commit.slice(0, 12)}</code>
        {status.pullRequest && (
          <>
            . Its pull request is{" "}
            {/^https?:\/\//.test(url) ? (
              <a href={url} target="_blank" rel="noopener noreferrer nofollow">
                {title || url}
              </a>
            ) : (
              title
            )}
            .
          </>
        )}
      </span>
    </p>
  );
}

/** Shows a push that waits for an approval. After the approval, the caller that requested the push executes it. */
function Waiting({
  runId,
  approvalId,
  onCarryOut,
}: {
  readonly runId: string;
  readonly approvalId: string;
  readonly onCarryOut: () => void;
}) {
  const { data, error } = useQuery(ApprovalService.method.getApproval, { approvalId });
  const { approval } = data ?? {};
  if (error) return <Problem error={error} />;
  if (!approval) return null;
  const [tone, word] = approvalState(approval.state);
  const isApproved = approval.state === ApprovalState.APPROVED;
  const isPending = approval.state === ApprovalState.PENDING;
  return (
    <div className={isPending || isApproved ? "bar bar-asks" : "bar bar-failed"} role="status">
      <StateMark tone={tone} word={word} />{" "}
      <span>
        {isPending && "Nothing has been pushed yet: the push needs approval. "}
        {isApproved && "The push is approved. Start it when you are ready. "}
        {!isPending && !isApproved && `Nothing was pushed. ${approval.reason} `}
        <Link to="/approvals/$approvalId" params={{ approvalId }}>
          See the approval
        </Link>
      </span>{" "}
      {isApproved && (
        <Button size="compact-xs" onClick={onCarryOut}>
          Push now
        </Button>
      )}
      {!isPending && !isApproved && (
        <Button variant="default" size="compact-xs" onClick={() => forgetPush(runId)}>
          Close
        </Button>
      )}
    </div>
  );
}
