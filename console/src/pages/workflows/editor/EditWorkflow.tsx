import { createClient } from "@connectrpc/connect";
import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { queries, transport } from "../../../api/server.tsx";
import { Dialog } from "../../../parts/Dialog.tsx";
import { Diff } from "../../../parts/diff/Diff.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { changedFields, type Draft, draftOf, textOf, updateOf, withFields } from "./draft.ts";
import { Editor } from "./Editor.tsx";
import { forgetUnsaved, readUnsaved, type Unsaved } from "./unsaved.ts";

const workflows = createClient(WorkflowService, transport);

/** Edits an existing workflow. Saving leaves fields alone that only others have changed in the meantime. */
export function EditWorkflow({ workflow }: { readonly workflow: Workflow }) {
  // Each save starts a new editor; changes from the server while somebody types do not.
  const [{ unsaved, begun, round }, setState] = useState(() => {
    const unsaved = readUnsaved(workflow.id);
    return { unsaved, begun: unsaved ?? asSaved(workflow), round: 0 };
  });
  const [edited, setEdited] = useState<Draft>();
  const beginAgain = (saved: Workflow) => {
    forgetUnsaved(saved.id);
    setState({ unsaved: undefined, begun: asSaved(saved), round: round + 1 });
  };
  return (
    <>
      <Editor
        key={round}
        workflowId={workflow.id}
        begun={begun}
        onDiscard={unsaved && (() => beginAgain(workflow))}
        verb="Review changes"
        isBusy={false}
        error={undefined}
        onDone={setEdited}
      />
      {edited && (
        <Dialog title="Review changes" size={860} onClose={() => setEdited(undefined)}>
          <Review
            workflowId={workflow.id}
            initial={begun.initial}
            edited={edited}
            onSaved={(saved) => {
              setEdited(undefined);
              beginAgain(saved);
            }}
          />
        </Dialog>
      )}
    </>
  );
}

/** Returns the initial state of an editor without changes. */
function asSaved(workflow: Workflow): Unsaved {
  const draft = draftOf(workflow);
  return { initial: draft, draft };
}

interface ReviewProps {
  readonly workflowId: string;
  /** The initial state of the editor, and the edited one. */
  readonly initial: Draft;
  readonly edited: Draft;
  readonly onSaved: (workflow: Workflow) => void;
}

/** Shows what saving will change in the current workflow, which others may have changed, and saves it. */
function Review({ workflowId, initial, edited, onSaved }: ReviewProps) {
  const fields = changedFields(initial, edited);
  const now = useQuery({
    queryKey: ["review", workflowId],
    gcTime: 0,
    refetchInterval: false,
    async queryFn({ signal }) {
      const [{ workflow }, { createTwoFilesPatch }] = await Promise.all([
        workflows.getWorkflow({ workflowId }, { signal }),
        import("diff"),
      ]);
      if (!workflow) throw new Error("the workflow is gone");
      const stored = draftOf(workflow);
      const after = withFields(stored, fields, edited);
      return {
        isChanged: changedFields(initial, stored).length > 0,
        patch: createTwoFilesPatch("now", "then", textOf(stored), textOf(after)),
        isSame: changedFields(stored, after).length === 0,
      };
    },
  });
  const save = useMutation(WorkflowService.method.updateWorkflow, {
    onSuccess({ workflow }) {
      void queries.invalidateQueries();
      if (workflow) onSaved(workflow);
    },
  });
  return (
    <Loaded reading={now}>
      {({ isChanged, patch, isSame }) => (
        <div className="stack">
          <Problem error={save.error} />
          {isChanged && (
            <p className="bar bar-asks" role="status">
              Someone changed the workflow while you were editing. Their changes to other fields stay. Below
              is what saving changes in the current version.
            </p>
          )}
          {isSame ? <p className="dim">Nothing changes.</p> : <Diff text={patch} path="workflow.json" />}
          <div className="row">
            <Button
              loading={save.isPending}
              disabled={isSame}
              onClick={() => save.mutate(updateOf(workflowId, edited, fields))}
            >
              Save workflow
            </Button>
          </div>
        </div>
      )}
    </Loaded>
  );
}
