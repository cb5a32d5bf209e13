import { createClient } from "@connectrpc/connect";
import { Button } from "@mantine/core";
import { useState } from "react";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { transport } from "../../../api/server.tsx";
import { ConfirmButton } from "../../../parts/ConfirmButton.tsx";
import { Dialog } from "../../../parts/Dialog.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { ShownOnce } from "../../../parts/ShownOnce.tsx";
import { useMayChange } from "../../organization/may-change.ts";

const workflows = createClient(WorkflowService, transport);

/** Shows the secret of a webhook, or creates another. No cache contains it, and closing removes it from the page. */
export function WebhookSecret({ workflow }: { readonly workflow: Workflow }) {
  const workflowId = workflow.id;
  const mayRead = useMayChange({ creator: workflow.metadata?.creator });
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const show = async (read: () => Promise<{ readonly secret: string }>) => {
    setIsBusy(true);
    setError(undefined);
    try {
      setSecret((await read()).secret);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setIsBusy(false);
    }
  };
  if (mayRead === undefined) return null;
  if (!mayRead)
    return <p className="dim">Only the workflow's creator and administrators can see the secret.</p>;
  return (
    <>
      <Problem error={error} />
      <div className="row">
        <Button
          variant="default"
          size="xs"
          loading={isBusy}
          onClick={() => void show(() => workflows.getWorkflowWebhookSecret({ workflowId }))}
        >
          Show secret
        </Button>
        <ConfirmButton
          label="Make a new secret"
          question="Creates a new secret. The old one stays valid for 24 hours: update the senders by then."
          onConfirm={() => void show(() => workflows.rotateWorkflowWebhookSecret({ workflowId }))}
          isBusy={isBusy}
        />
      </div>
      {secret !== "" && (
        <Dialog title="Webhook secret" onClose={() => setSecret("")}>
          <ShownOnce
            note="Share it only with people who may start the workflow. Each time it is shown, the audit log records it."
            text={secret}
            what="secret"
            onClose={() => setSecret("")}
          />
        </Dialog>
      )}
    </>
  );
}
