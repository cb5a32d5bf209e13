import { useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox, Textarea } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { keepTyped, useKeptText } from "../../api/typed.ts";
import { Dialog } from "../../parts/Dialog.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ContextFields, emptyContext } from "./editor/ContextFields.tsx";
import { Preview } from "./Preview.tsx";
import { usedParameters } from "./used-parameters.ts";
import { contextText } from "./workflow-state.ts";

/** Starts a workflow manually, with values for its parameters and optionally other repositories. */
export function StartWorkflow({
  workflow,
  onClose,
}: {
  readonly workflow: Workflow;
  readonly onClose: () => void;
}) {
  const navigate = useNavigate();
  const manual = workflow.spec?.triggers.find(({ trigger }) => trigger.case === "manual");
  const [isElsewhere, setIsElsewhere] = useState(manual === undefined);
  const [context, setContext] = useState(() =>
    manual?.context && manual.context.context.case !== "fromTrigger" ? manual.context : emptyContext("urls"),
  );
  const keptAs = `parameters ${workflow.id}`;
  const [typed, setTyped] = useKeptText(keptAs, "{}");
  const values: Readonly<Record<string, string>> = JSON.parse(typed);
  const parameters = usedParameters(workflow);
  const start = useMutation(WorkflowService.method.startWorkflow, {
    onSuccess({ workflowExecution }) {
      keepTyped(keptAs, "");
      void navigate({
        to: "/executions/$executionId",
        params: { executionId: workflowExecution?.id ?? "" },
      });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    start.mutate({
      workflowId: workflow.id,
      parameters: values,
      ...(isElsewhere && { contextOverride: context }),
    });
  };
  return (
    <Dialog title="Start workflow" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <Problem error={start.error} />
        {parameters.map(({ key, description, defaultValue }) => (
          <Textarea
            key={key}
            label={key}
            description={[
              description,
              defaultValue === undefined
                ? "No default."
                : values[key] === undefined && "If unchanged, the default is used.",
            ]
              .filter(Boolean)
              .join(" ")}
            required={defaultValue === undefined}
            autosize
            minRows={1}
            maxRows={8}
            maxLength={8192}
            value={values[key] ?? defaultValue ?? ""}
            onChange={({ currentTarget: { value } }) => setTyped(JSON.stringify({ ...values, [key]: value }))}
          />
        ))}
        {manual ? (
          <Checkbox
            label={`Run elsewhere than over ${contextText(manual.context)}, this once`}
            checked={isElsewhere}
            onChange={(event) => setIsElsewhere(event.currentTarget.checked)}
          />
        ) : (
          <p className="dim">The workflow has no manual trigger, so choose where this execution runs.</p>
        )}
        {isElsewhere && (
          <ContextFields path="context_override" context={context} onChange={setContext} isOfEvent={false} />
        )}
        <Preview
          workflowId={workflow.id}
          parameters={values}
          contextOverride={isElsewhere ? context : undefined}
        />
        <div className="row">
          <Button type="submit" loading={start.isPending}>
            Start workflow
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
