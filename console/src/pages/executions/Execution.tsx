import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import type { WorkflowError } from "#gen/service/v1/workflow_error_pb.js";
import type { WorkflowExecution } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { Who } from "../../api/person.tsx";
import { rereadAll } from "../../api/server.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Page, TabLinks } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { Ago, Lasting } from "../../parts/Time.tsx";
import { contextText, executionState, hasEnded, startedBy } from "../workflows/workflow-state.ts";
import { Actions } from "./Actions.tsx";
import { Outputs } from "./Outputs.tsx";
import { PullRequests } from "./PullRequests.tsx";
import "./executions.css";

/** Shows one execution: the board of its actions, their outputs, and the pull requests that they opened. */
export function Execution() {
  const { executionId } = useParams({ from: "/executions/$executionId" });
  const { tab = "actions" } = useSearch({ from: "/executions/$executionId" });
  // The key resets all state when the execution changes.
  return <ExecutionPage key={executionId} executionId={executionId} tab={tab} />;
}

function ExecutionPage({ executionId, tab }: { readonly executionId: string; readonly tab: string }) {
  const reading = useQuery(WorkflowService.method.getWorkflowExecution, {
    workflowExecutionId: executionId,
  });
  const execution = reading.data?.workflowExecution;
  const workflowId = execution?.metadata?.workflowId ?? "";
  const workflow = useQuery(
    WorkflowService.method.getWorkflow,
    { workflowId },
    { enabled: workflowId !== "", retry: false },
  );
  const name = workflow.data?.workflow?.metadata?.name;
  const title = name ?? "Execution";
  if (!execution) {
    return (
      <Page title={title}>
        <Loaded reading={reading}>{() => null}</Loaded>
      </Page>
    );
  }
  const [tone, word] = executionState(execution);
  return (
    <Page
      title={title}
      wide={tab === "actions"}
      mark={<State tone={tone} word={word} />}
      facts={<Facts execution={execution} name={name} />}
      actions={<Deeds execution={execution} />}
    >
      {reading.error && <Problem error={reading.error} onRetry={() => void reading.refetch()} />}
      <Troubles tone="failed" errors={execution.status?.failures ?? []} />
      <Troubles tone="asks" errors={execution.status?.warnings ?? []} />
      <TabLinks
        current={tab}
        tabs={[
          ["actions", "Actions"],
          ["outputs", "Outputs"],
          ["pull-requests", "Pull requests"],
        ]}
      />
      {tab === "outputs" && <Outputs execution={execution} name={title} />}
      {tab === "pull-requests" && <PullRequests executionId={executionId} />}
      {tab === "actions" && <Actions execution={execution} />}
    </Page>
  );
}

function Facts({
  execution: { metadata, spec },
  name,
}: {
  readonly execution: WorkflowExecution;
  readonly name: string | undefined;
}) {
  return (
    <>
      {name !== undefined && (
        <Link to="/workflows/$workflowId" params={{ workflowId: metadata?.workflowId ?? "" }}>
          the workflow
        </Link>
      )}
      <span>
        started {startedBy(spec?.trigger)} by <Who subject={metadata?.creator} />,{" "}
        <Ago at={metadata?.startedAt} />
      </span>
      <span>
        runs as <Who subject={metadata?.executor} />
      </span>
      <span>over {contextText(spec?.trigger?.context)}</span>
      <span>
        took <Lasting from={metadata?.startedAt} to={metadata?.finishedAt} />
      </span>
      {metadata?.retriedExecutionId && (
        <Link to="/executions/$executionId" params={{ executionId: metadata.retriedExecutionId }}>
          retries the failed actions of an earlier one
        </Link>
      )}
      {metadata?.trace && (
        <span>
          trace <code>{metadata.trace.traceId}</code>
        </span>
      )}
    </>
  );
}

/** The actions of a person on an execution: cancel it while it runs, retry its failures after its end. */
function Deeds({ execution }: { readonly execution: WorkflowExecution }) {
  const navigate = useNavigate();
  const workflowExecutionId = execution.id;
  const cancel = useMutation(WorkflowService.method.cancelWorkflowExecution, rereadAll);
  const retry = useMutation(WorkflowService.method.retryFailedActions, {
    onSuccess: ({ workflowExecution }) =>
      void navigate({
        to: "/executions/$executionId",
        params: { executionId: workflowExecution?.id ?? "" },
      }),
  });
  const { status } = execution;
  const failed = status?.failedActionCount ?? 0;
  const left = (status?.pendingActionCount ?? 0) + (status?.runningActionCount ?? 0);
  return (
    <>
      <Problem error={cancel.error ?? retry.error} />
      {hasEnded(execution) && failed > 0 && (
        <Button size="xs" loading={retry.isPending} onClick={() => retry.mutate({ workflowExecutionId })}>
          Retry {failed.toLocaleString()} failed
        </Button>
      )}
      {!hasEnded(execution) && (
        <ConfirmButton
          label="Cancel execution"
          question={`Stops ${(status?.runningActionCount ?? 0).toLocaleString()} running and never starts ${(
            status?.pendingActionCount ?? 0
          ).toLocaleString()} pending actions, ${left.toLocaleString()} in total.`}
          onConfirm={() => cancel.mutate({ workflowExecutionId })}
          isBusy={cancel.isPending}
        />
      )}
    </>
  );
}

/** Shows failures or warnings of the execution as a whole; those of actions are shown with the action. */
function Troubles({
  tone,
  errors,
}: {
  readonly tone: "failed" | "asks";
  readonly errors: readonly WorkflowError[];
}) {
  const own = errors.filter(({ meta }) => meta.workflow_execution_action_id === undefined);
  return own.map(({ message, reason }, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the list only grows
    <p key={at} className={`bar bar-${tone}`}>
      {message} {reason && <code>{reason}</code>}
    </p>
  ));
}
