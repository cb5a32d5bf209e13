import { create } from "@bufbuild/protobuf";
import { Button, Textarea } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { WorkflowActionSchema } from "#gen/service/v1/workflow_pb.js";
import { CreateWorkflowRequestSchema } from "#gen/service/v1/workflow_service_pb.js";
import { UnsavedChanges } from "../../../parts/fields/Edited.tsx";
import { LongField, TextField } from "../../../parts/fields/fields.tsx";
import { RuledForm } from "../../../parts/fields/RuledForm.tsx";
import { ActionFields } from "./ActionFields.tsx";
import { AgentFields } from "./AgentFields.tsx";
import { type Draft, draftFrom, textOf } from "./draft.ts";
import { ParametersFields } from "./ParametersFields.tsx";
import { emptyStep } from "./StepFields.tsx";
import { TriggersFields } from "./TriggerFields.tsx";
import { keepUnsaved, type Unsaved } from "./unsaved.ts";

interface EditorProps {
  /** "" for a new one. */
  readonly workflowId: string;
  readonly begun: Unsaved;
  /** Starts again with the saved state; given when the editor starts with earlier unsaved text. */
  readonly onDiscard?: (() => void) | undefined;
  /** The verb of the button at the end. */
  readonly verb: string;
  readonly isBusy: boolean;
  /** Why saving failed. */
  readonly error: unknown;
  /** Called with a draft that breaks no rule of the contract. */
  readonly onDone: (draft: Draft) => void;
}

/**
 * Edits a workflow as a form or as text, and checks the contract's own rules. The tab keeps what is typed until it is
 * saved: a reload or an expired session does not lose it.
 */
export function Editor({ workflowId, begun, onDiscard, verb, isBusy, error, onDone }: EditorProps) {
  const { initial } = begun;
  const [draft, setDraft] = useState(begun.draft);
  const [text, setText] = useState(begun.text);
  const read = useMemo(() => (text === undefined ? { draft } : draftFrom(text)), [draft, text]);
  const current = "draft" in read ? read.draft : undefined;
  useEffect(() => {
    keepUnsaved(workflowId, { initial, draft: current ?? draft, text });
  }, [workflowId, initial, current, draft, text]);
  return (
    <RuledForm
      schema={CreateWorkflowRequestSchema}
      message={current}
      listsBreaches={text !== undefined}
      verb={verb}
      isBusy={isBusy}
      error={error}
      onDone={onDone}
    >
      {onDiscard && <UnsavedChanges onDiscard={onDiscard} />}
      <div className="row">
        <Button
          variant="default"
          size="xs"
          disabled={!current}
          onClick={() => {
            if (!current) return;
            setDraft(current);
            setText(text === undefined ? textOf(current) : undefined);
          }}
        >
          {text === undefined ? "Edit as text" : "Edit as a form"}
        </Button>
      </div>
      {text === undefined ? (
        <Fields draft={draft} onChange={setDraft} />
      ) : (
        <Textarea
          aria-label="Workflow as text"
          classNames={{ input: "mono" }}
          autosize
          minRows={16}
          maxRows={40}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          error={"problem" in read ? read.problem : undefined}
        />
      )}
    </RuledForm>
  );
}

function Fields({ draft, onChange }: { readonly draft: Draft; readonly onChange: (draft: Draft) => void }) {
  const { action, report } = draft;
  return (
    <>
      <section className="editor-part" aria-label="Name and description">
        <TextField
          path="name"
          label="Name"
          value={draft.name}
          onChange={(name) => onChange({ ...draft, name })}
        />
        <LongField
          path="description"
          label="Description"
          value={draft.description}
          onChange={(description) => onChange({ ...draft, description })}
        />
      </section>
      <section className="editor-part" aria-label="Steps">
        <h2>Steps for each repository</h2>
        <ActionFields
          path="action"
          action={action ?? create(WorkflowActionSchema)}
          onChange={(action) => onChange({ ...draft, action })}
        />
      </section>
      <section className="editor-part" aria-label="Triggers">
        <h2>When and where</h2>
        <TriggersFields triggers={draft.triggers} onChange={(triggers) => onChange({ ...draft, triggers })} />
      </section>
      <section className="editor-part" aria-label="Parameters">
        <h2>Parameters</h2>
        <ParametersFields
          parameters={draft.parameters}
          onChange={(parameters) => onChange({ ...draft, parameters })}
        />
      </section>
      <section className="editor-part" aria-label="Report">
        <h2>Report at the end, over all outputs</h2>
        {report ? (
          <ActionFields
            path="report"
            action={report}
            isReport
            onChange={(report) => onChange({ ...draft, report })}
          />
        ) : (
          <p className="dim">Nothing.</p>
        )}
        <div className="row">
          <Button
            variant="default"
            size="xs"
            onClick={() => {
              const { report: _, ...rest } = draft;
              const begun = create(WorkflowActionSchema, {
                limits: { maxParallel: 1, maxTotal: 1 },
                steps: [emptyStep("task")],
              });
              onChange(report ? rest : { ...rest, report: begun });
            }}
          >
            {report ? "Remove report" : "Add report"}
          </Button>
        </div>
      </section>
      <section className="editor-part" aria-label="Agent and executor">
        <h2>Identity and agent</h2>
        <AgentFields draft={draft} onChange={onChange} />
      </section>
    </>
  );
}
