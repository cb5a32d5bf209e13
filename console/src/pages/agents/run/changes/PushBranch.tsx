import { Button, Checkbox, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useKeptText } from "../../../../api/typed.ts";
import { PullRequests } from "../../../executions/PullRequests.tsx";
import { PushProgress } from "./PushProgress.tsx";
import { fieldName, push, usePush } from "./push.ts";

/**
 * Pushes a run's changes to a branch of its remote, and opens a pull request for it. The checks of the pull request
 * are shown below.
 */
export function PushBranch({
  runId,
  environmentId,
}: {
  readonly runId: string;
  readonly environmentId: string;
}) {
  const status = usePush(runId);
  const { order, isBusy } = status;
  const [branch, setBranch] = useKeptText(fieldName(runId, "branch"), order?.branch);
  const [commitMessage, setCommitMessage] = useKeptText(fieldName(runId, "message"), order?.commitMessage);
  const [title, setTitle] = useKeptText(fieldName(runId, "title"), order?.pullRequest?.title);
  const [force, setForce] = useState(order?.force ?? false);
  const [draft, setDraft] = useState(order?.pullRequest?.draft ?? false);
  const begin = (opens: boolean) =>
    void push(runId, environmentId, {
      ...{ branch, commitMessage, force },
      pullRequest: opens ? { title, draft } : undefined,
    });
  return (
    <section className="card" aria-label="Push">
      <h2>Push and pull request</h2>
      <form
        className="stack"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          begin(true);
        }}
      >
        <div className="push-fields">
          <TextInput
            label="Branch"
            placeholder="A branch named after the run"
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
          label="Commit message for uncommitted changes"
          description="If empty, the push fails when there are uncommitted changes."
          autosize
          minRows={1}
          maxRows={6}
          maxLength={20_000}
          value={commitMessage}
          onChange={(event) => setCommitMessage(event.currentTarget.value)}
        />
        <div className="row choices">
          <Checkbox
            size="xs"
            label="As a draft"
            checked={draft}
            onChange={(event) => setDraft(event.currentTarget.checked)}
          />
          <Checkbox
            size="xs"
            label="Allow the branch to lose commits (force)"
            checked={force}
            onChange={(event) => setForce(event.currentTarget.checked)}
          />
        </div>
        <div className="row">
          <Button
            type="submit"
            size="xs"
            disabled={isBusy}
            loading={isBusy && order?.pullRequest !== undefined}
          >
            Open pull request
          </Button>
          <Button
            variant="default"
            size="xs"
            disabled={isBusy}
            loading={isBusy && order?.pullRequest === undefined}
            onClick={() => begin(false)}
          >
            Push only
          </Button>
        </div>
        <PushProgress runId={runId} environmentId={environmentId} status={status} />
      </form>
      <PullRequests agentExecutionId={runId} />
    </section>
  );
}
