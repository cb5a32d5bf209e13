import { useMutation } from "@connectrpc/connect-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { queries } from "../../api/server.tsx";
import { Page } from "../../parts/Page.tsx";
import { newDraft } from "./editor/draft.ts";
import { Editor } from "./editor/Editor.tsx";
import "./workflows.css";

/** Makes a workflow. */
export function NewWorkflow() {
  const navigate = useNavigate();
  const [initial] = useState(newDraft);
  const createWorkflow = useMutation(WorkflowService.method.createWorkflow, {
    onSuccess({ workflow }) {
      void queries.invalidateQueries();
      void navigate({ to: "/workflows/$workflowId", params: { workflowId: workflow?.id ?? "" } });
    },
  });
  return (
    <Page title="Create workflow" facts={<Link to="/workflows">All workflows</Link>}>
      <Editor
        initial={initial}
        verb="Create workflow"
        isBusy={createWorkflow.isPending}
        error={createWorkflow.error}
        onDone={(draft) => createWorkflow.mutate(draft)}
      />
    </Page>
  );
}
