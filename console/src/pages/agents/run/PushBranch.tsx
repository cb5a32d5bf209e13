import { useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox, Textarea, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import {
  type EnvironmentPush,
  EnvironmentPush_Outcome as Outcome,
  EnvironmentPush_Stage as Stage,
  EnvironmentPush_State as State,
} from "#gen/service/v1/environment_push_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { queries } from "../../../api/server.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { PullRequests } from "../../executions/PullRequests.tsx";

const OUTCOMES: Readonly<Record<Outcome, string>> = {
  [Outcome.UNSPECIFIED]: "was pushed",
  [Outcome.CREATED]: "is new",
  [Outcome.ADVANCED]: "has more commits than before",
  [Outcome.REPLACED]: "has lost commits",
  [Outcome.UNCHANGED]: "had this commit already",
};

const STAGES: Readonly<Record<Stage, string>> = {
  [Stage.UNSPECIFIED]: "Begins",
  [Stage.LOOKING]: "Looks at the files",
  [Stage.COPYING]: "Copies and checks what is new",
  [Stage.SENDING]: "Sends it",
  [Stage.TAKING]: "The remote takes it in",
};

/** Pushes what a run changed to a branch of its remote, and opens a pull request for it, whose checks are followed below. */
export function PushBranch({
  runId,
  environmentId,
}: {
  readonly runId: string;
  readonly environmentId: string;
}) {
  const [branch, setBranch] = useState("");
  const [commitMessage, setCommitMessage] = useState("");
  const [title, setTitle] = useState("");
  const [force, setForce] = useState(false);
  const [draft, setDraft] = useState(false);
  const [push, setPush] = useState<EnvironmentPush>();
  const onSettled = () => queries.invalidateQueries();
  const pushBranch = useMutation(EnvironmentService.method.pushEnvironmentBranch, { onSettled });
  const openPullRequest = useMutation(EnvironmentService.method.openPullRequest, { onSettled });
  const isBusy = pushBranch.isPending || openPullRequest.isPending;
  const what = { environmentId, branch, commitMessage, force };
  /** Calls again while the runner goes on: each call waits for it for most of a minute. */
  const untilSettled = async (call: () => Promise<{ readonly push?: EnvironmentPush | undefined }>) => {
    setPush(undefined);
    pushBranch.reset();
    openPullRequest.reset();
    try {
      for (let isGoingOn = true; isGoingOn; ) {
        const { push } = await call();
        setPush(push);
        isGoingOn = push?.state === State.GOING_ON;
      }
    } catch {
      // Shown by the mutation that failed.
    }
  };
  return (
    <section className="card" aria-label="Push">
      <h2>Push and pull request</h2>
      <form
        className="stack"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          void untilSettled(() => openPullRequest.mutateAsync({ ...what, title, draft }));
        }}
      >
        <div className="push-fields">
          <TextInput
            label="Branch"
            placeholder="One that is named after the run"
            maxLength={255}
            value={branch}
            onChange={(event) => setBranch(event.currentTarget.value)}
          />
          <TextInput
            label="Title of the pull request"
            placeholder="The name of the run"
            maxLength={500}
            value={title}
            onChange={(event) => setTitle(event.currentTarget.value)}
          />
        </div>
        <Textarea
          label="Message of a commit of what is not committed"
          description="Left empty, a push fails where something is not committed."
          autosize
          minRows={1}
          maxRows={6}
          maxLength={20_000}
          value={commitMessage}
          onChange={(event) => setCommitMessage(event.currentTarget.value)}
        />
        <div className="row">
          <Checkbox
            size="xs"
            label="As a draft"
            checked={draft}
            onChange={(event) => setDraft(event.currentTarget.checked)}
          />
          <Checkbox
            size="xs"
            label="The branch may lose commits"
            checked={force}
            onChange={(event) => setForce(event.currentTarget.checked)}
          />
        </div>
        <div className="row">
          <Button type="submit" size="xs" disabled={isBusy} loading={openPullRequest.isPending}>
            Open pull request
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={isBusy}
            loading={pushBranch.isPending}
            onClick={() => void untilSettled(() => pushBranch.mutateAsync(what))}
          >
            Push only
          </Button>
        </div>
        <Problem error={pushBranch.error ?? openPullRequest.error} />
        {push && <PushState push={push} />}
      </form>
      <PullRequests agentExecutionId={runId} />
    </section>
  );
}

function PushState({ push }: { readonly push: EnvironmentPush }) {
  if (push.state === State.WAITING_FOR_APPROVAL) {
    return (
      <p className="bar bar-asks" role="status">
        Nothing was pushed yet: people are asked.{" "}
        <Link to="/approvals/$approvalId" params={{ approvalId: push.approvalId }}>
          See the approval
        </Link>
        ; once it is approved, push again.
      </p>
    );
  }
  if (push.state === State.GOING_ON) {
    const percent = push.progress?.percent ?? 0;
    return (
      <p className="bar" role="status">
        {STAGES[push.progress?.stage ?? Stage.UNSPECIFIED]} … {percent > 0 && `${percent} %`}
      </p>
    );
  }
  return (
    <p className="bar" role="status">
      The branch <code>{push.branch}</code> {OUTCOMES[push.outcome]}: <code>{push.commit.slice(0, 12)}</code>
    </p>
  );
}
