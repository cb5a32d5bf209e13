import { ConnectError, createClient } from "@connectrpc/connect";
import { Button, NativeSelect, Textarea } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { TriggerVerdict as Verdict } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { queries, transport } from "../../../api/server.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { State } from "../../../parts/State.tsx";
import { VERDICTS } from "../workflow-state.ts";
import { signedHeaders } from "./signed-headers.ts";

const workflows = createClient(WorkflowService, transport);

/** One entry of the webhook's response. */
interface Answered {
  readonly triggerEventId: string;
  readonly verdict: string;
  readonly reason: string;
  readonly workflowExecutionId: string;
}

/** The headers with which hosts mark the body as an event (docs/workflows.md). */
const FORMS = [
  ["", "A call that starts the manual trigger"],
  ["x-github-event: pull_request", "Pull request event from GitHub"],
  ["x-gitlab-event: Merge Request Hook", "Merge request event from GitLab"],
  ["x-gitea-event: pull_request", "Pull request event from Gitea or Forgejo"],
] as const;

/**
 * Posts to the webhook like a sender would, signed in the page with the workflow's secret, and shows the result. It
 * starts a real execution. No variable keeps the secret after the delivery.
 */
export function WebhookTester({ workflowId }: { readonly workflowId: string }) {
  const [form, setForm] = useState<string>(FORMS[0][0]);
  const [body, setBody] = useState('{"parameters": {}}');
  const [answer, setAnswer] = useState<{ readonly status: number; readonly verdicts: readonly Answered[] }>();
  const [refusal, setRefusal] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const send = async () => {
    const { secret } = await workflows.getWorkflowWebhookSecret({ workflowId });
    const [name, value] = form.split(": ");
    const response = await fetch(`/workflows/${workflowId}/webhooks`, {
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        ...(name && value && { [name]: value }),
        ...(await signedHeaders(secret, body)),
      },
    });
    const answer = await response.json();
    if (Array.isArray(answer.verdicts)) setAnswer({ status: response.status, verdicts: answer.verdicts });
    else setRefusal(`${response.status}: ${answer.message ?? response.statusText}`);
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    setAnswer(undefined);
    setRefusal("");
    setError(undefined);
    try {
      await send();
    } catch (thrown) {
      if (thrown instanceof ConnectError) setError(thrown);
      else setRefusal((thrown as Error).message);
    } finally {
      setIsBusy(false);
      void queries.invalidateQueries();
    }
  };
  return (
    <form className="stack" onSubmit={(event) => void submit(event)}>
      <NativeSelect
        label="What is posted"
        value={form}
        onChange={(event) => setForm(event.currentTarget.value)}
        data={FORMS.map(([value, label]) => ({ value, label }))}
      />
      <Textarea
        label="Body"
        classNames={{ input: "mono" }}
        autosize
        minRows={3}
        maxRows={16}
        spellCheck={false}
        value={body}
        onChange={(event) => setBody(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" variant="default" size="xs" loading={isBusy}>
          Deliver
        </Button>
        <span className="dim small">
          Delivered and signed like a real event: the executions it starts are real.
        </span>
      </div>
      <Problem error={error} />
      {refusal !== "" && (
        <p className="bar bar-failed" role="status">
          {refusal}
        </p>
      )}
      {answer && (
        <div role="status">
          <ul className="verdicts">
            {answer.verdicts.map(({ triggerEventId, verdict, reason, workflowExecutionId }) => {
              const [tone, word] = VERDICTS[verdictOf(verdict)];
              return (
                <li key={triggerEventId} className="row">
                  <State tone={tone} word={word} />
                  {reason && <span>{reason}</span>}
                  {workflowExecutionId && (
                    <Link to="/executions/$executionId" params={{ executionId: workflowExecutionId }}>
                      The execution
                    </Link>
                  )}
                </li>
              );
            })}
          </ul>
        </div>
      )}
    </form>
  );
}

const verdictOf = (name: string): Verdict =>
  Verdict[name.replace(/^TRIGGER_VERDICT_/, "") as keyof typeof Verdict] ?? Verdict.UNSPECIFIED;
