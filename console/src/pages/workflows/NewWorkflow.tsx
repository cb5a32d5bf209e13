import { useMutation } from "@connectrpc/connect-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { queries } from "../../api/server.tsx";
import { Page } from "../../parts/Page.tsx";
import { newDraft } from "./editor/draft.ts";
import { Editor } from "./editor/Editor.tsx";
import { forgetUnsaved, readUnsaved, type Unsaved } from "./editor/unsaved.ts";
import "./workflows.css";

/** Creates a workflow. */
export function NewWorkflow() {
  const navigate = useNavigate();
  const [{ unsaved, begun, round }, setState] = useState(() => {
    const unsaved = readUnsaved("");
    return { unsaved, begun: unsaved ?? nothingYet(), round: 0 };
  });
  const createWorkflow = useMutation(WorkflowService.method.createWorkflow, {
    onSuccess({ workflow }) {
      forgetUnsaved("");
      void queries.invalidateQueries();
      void navigate({ to: "/workflows/$workflowId", params: { workflowId: workflow?.id ?? "" } });
    },
  });
  return (
    <Page title="Create workflow" facts={<Link to="/workflows">All workflows</Link>}>
      <Editor
        key={round}
        workflowId=""
        begun={begun}
        onDiscard={unsaved && (() => setState({ unsaved: undefined, begun: nothingYet(), round: round + 1 }))}
        verb="Create workflow"
        isBusy={createWorkflow.isPending}
        error={createWorkflow.error}
        onDone={(draft) => createWorkflow.mutate(draft)}
      />
    </Page>
  );
}

/** Returns the initial state of an editor. */
function nothingYet(): Unsaved {
  const draft = newDraft();
  return { initial: draft, draft };
}
