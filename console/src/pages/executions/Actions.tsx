import { useMutation } from "@connectrpc/connect-query";
import { TextInput } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type {
  WorkflowExecutionAction_Status_StepStatus as StepStatus,
  WorkflowExecution,
  WorkflowExecutionAction,
} from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { rereadAll } from "../../api/server.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { Lasting } from "../../parts/Time.tsx";
import { actionState, firstStep, GROUPS, isOver, stepState, stepText } from "./action-state.ts";
import { Board } from "./Board.tsx";
import { LogView } from "./log/LogView.tsx";
import { useActions } from "./use-actions.ts";
import "../../parts/work.css";

/** Minimum number of actions to show a search on the board. */
const SEARCHED_FROM = 12;

/** Shows the board of an execution's actions, and below it the steps and output of the chosen one. */
export function Actions({ execution }: { readonly execution: WorkflowExecution }) {
  const { action: chosenId } = useSearch({ from: "/executions/$executionId" });
  const [text, setText] = useState("");
  const actions = useActions(execution.id);
  return (
    <Loaded reading={actions} lines={6}>
      {(all) => {
        if (all.length === 0) {
          return (
            <Empty title="The execution has no actions.">
              <p>There was nothing to run on: its trigger names no project or repository.</p>
            </Empty>
          );
        }
        const shown = text
          ? all.filter(({ metadata }) => metadata?.actionName.toLowerCase().includes(text.toLowerCase()))
          : all;
        const selected = all.find(({ id }) => id === chosenId) ?? firstOf(all);
        return (
          <>
            {all.length >= SEARCHED_FROM && (
              <TextInput
                type="search"
                aria-label="Search actions"
                placeholder="Search actions by name"
                leftSection={<Icon name="search" size={14} />}
                className="search"
                value={text}
                onChange={(event) => setText(event.currentTarget.value)}
              />
            )}
            <Board actions={shown} selectedId={selected?.id} />
            {shown.length === 0 && <p className="dim">No action has “{text}” in its name.</p>}
            {selected && <ActionView key={selected.id} action={selected} />}
          </>
        );
      }}
    </Loaded>
  );
}

/** Returns the first action of the board. */
function firstOf(actions: readonly WorkflowExecutionAction[]): WorkflowExecutionAction | undefined {
  for (const [tone] of GROUPS) {
    const first = actions.find((action) => actionState(action)[0] === tone);
    if (first) return first;
  }
  return undefined;
}

/** Shows one action: its state, its steps, and the log of one of them. */
function ActionView({ action }: { readonly action: WorkflowExecutionAction }) {
  const { step: chosen } = useSearch({ from: "/executions/$executionId" });
  const { metadata, spec, status } = action;
  const [tone, word] = actionState(action);
  const steps = status?.stepStatuses ?? [];
  // Keeps the step that was shown first: jumping to the next one would take the log away from its reader.
  const [seen] = useState(() => firstStep(action));
  const at = Math.min(chosen ?? seen, Math.max(0, steps.length - 1));
  const step = steps[at];
  const context = spec?.context?.context;
  const cancel = useMutation(WorkflowService.method.cancelWorkflowExecutionAction, rereadAll);
  const approvals = step?.step?.step.case === "approval";
  return (
    <section className="action" aria-label={`Action ${metadata?.actionName}`}>
      <header className="action-head">
        <h2>{metadata?.actionName}</h2>
        <State tone={tone} word={word} />
        <span className="dim">
          <Lasting from={metadata?.startedAt} to={metadata?.finishedAt} />
          {(status?.attempt ?? 0) > 1 && `, attempt ${status?.attempt}`}
        </span>
        {context?.case === "contextUrl" && <code className="cut dim">{context.value.url}</code>}
        {status?.agentExecutionId && (
          <Link to="/agents/$runId" params={{ runId: status.agentExecutionId }}>
            The agent's run
          </Link>
        )}
        {!isOver(action) && (
          <span className="action-deeds">
            <ConfirmButton
              label="Cancel action"
              question="Stops only this action. The other actions of the execution continue."
              onConfirm={() => cancel.mutate({ workflowExecutionActionId: action.id })}
              isBusy={cancel.isPending}
            />
          </span>
        )}
      </header>
      <Problem error={cancel.error} />
      {status?.failures.map(({ message, reason }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list only grows
        <p key={index} className="bar bar-failed">
          {message} {reason && <code>{reason}</code>}
        </p>
      ))}
      {status?.warnings.map(({ message, reason }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list only grows
        <p key={index} className="bar bar-asks">
          {message} {reason && <code>{reason}</code>}
        </p>
      ))}
      <div className="action-parts">
        <Steps steps={steps} at={at} />
        <div className="action-log">
          {approvals && (
            <p className="bar">
              This step waits for people. <Link to="/approvals">See the approvals</Link>.
            </p>
          )}
          {step?.pullRequestUrl && <OpenedPullRequest url={step.pullRequestUrl} />}
          <LogView
            key={`${at} ${status?.attempt}`}
            actionId={action.id}
            stepIndex={at}
            attempt={status?.attempt ?? 0}
            fileName={`${metadata?.actionName}-step-${at + 1}.log`}
            isOver={isOver(action)}
          />
        </div>
      </div>
    </section>
  );
}

function Steps({ steps, at }: { readonly steps: readonly StepStatus[]; readonly at: number }) {
  const shown = useMemo(() => steps.map((step) => ({ step, text: stepText(step.step) })), [steps]);
  return (
    <ol className="action-steps" aria-label="Steps">
      {shown.map(({ step, text }, index) => {
        const [tone, word] = stepState(step.phase);
        return (
          <li key={step.stepIndex}>
            <Link
              to="."
              search={(before: Record<string, unknown>) => ({ ...before, step: index })}
              replace
              resetScroll={false}
              className="action-step"
              aria-current={index === at || undefined}
            >
              <span className="cut" title={text}>
                {text}
              </span>
              <State tone={tone} word={word} />
              <span className="dim small">
                <Lasting from={step.startedAt} to={step.finishedAt} />
              </span>
            </Link>
          </li>
        );
      })}
    </ol>
  );
}

/** A link to what a step opened; only web pages are links. */
function OpenedPullRequest({ url }: { readonly url: string }) {
  const isPage = /^https?:\/\//.test(url);
  return (
    <p className="bar">
      Opened{" "}
      {isPage ? (
        <a href={url} target="_blank" rel="noopener noreferrer nofollow">
          {url}
        </a>
      ) : (
        <code>{url}</code>
      )}
    </p>
  );
}
